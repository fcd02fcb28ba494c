"""Hypothesis for as long as there is time, and a guard around what may hang or fill the memory."""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

__all__ = ["Hang", "fuzz", "guarded"]

Value = TypeVar("Value")

_EXAMPLES_A_ROUND = 20
_SECONDS = 30
_MEMORY = 1024 * 1024 * 1024


class Hang(BaseException):
    """Took longer than anything so small may. Not an Exception, which a parser would swallow."""


def fuzz(strategy: st.SearchStrategy[Value], check: Callable[[Value], None], seconds: float) -> int:
    """Check rounds of examples until the time is over, at least one; return how many there were. A failure ends it,
    with the example as it is."""
    end = time.monotonic() + seconds
    examples = 0

    def counted(value: Any) -> None:
        nonlocal examples
        examples += 1
        check(value)

    one_round = settings(
        max_examples=_EXAMPLES_A_ROUND,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
        # A file that takes seconds would be shrunk for minutes, past any bound.
        phases=[Phase.generate],
    )(given(strategy)(counted))
    while True:
        one_round()
        if time.monotonic() >= end:
            return examples


@contextmanager
def guarded() -> Generator[None]:
    """As the worker that extracts: a bound to the memory it may take, and to the time."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, _hang)
    resource.setrlimit(resource.RLIMIT_AS, (taken + _MEMORY, before[1]))
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGALRM, handler)


def _hang(*_: object) -> None:
    raise Hang
