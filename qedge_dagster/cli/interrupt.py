"""Ctrl-C and SIGTERM while a run is active: stop at the next committed boundary, and at once when asked twice."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType

from qedge_dagster.cli.failure import ExitCode

__all__ = ["cancel_on_signals"]


class _Handler:
    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel
        self.asked = False

    def __call__(self, number: int, _: FrameType | None) -> None:
        if not self.asked:
            self.asked = True
            self._cancel()
            _say("stopping at the next committed boundary; Ctrl-C again leaves at once")
        elif number == signal.SIGINT:
            _say("left at once; what was committed is kept, run the same command again to go on")
            os._exit(ExitCode.CANCELLED)


def _say(text: str) -> None:
    # Not through sys.stderr: the signal may have come in the middle of a write to it. A live display has hidden the
    # cursor, and nobody would show it again after os._exit.
    show_cursor = "\r\x1b[2K\x1b[?25h" if sys.stderr.isatty() else ""
    with suppress(OSError):
        os.write(2, f"{show_cursor}qedge: {text}\n".encode())


@contextmanager
def cancel_on_signals(cancel: Callable[[], None]) -> Generator[None]:
    """Call `cancel` on the first SIGINT or SIGTERM; leave the process on a SIGINT after it.

    Once asked, the process is on its way to its end, and a SIGTERM more would cost it its exit code: it is ignored from
    then on, by the interpreter's own shutdown as well.
    """
    handler = _Handler(cancel)
    handled = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, handler) for number in handled]
    try:
        yield
    finally:
        for number, previous in zip(handled, before, strict=True):
            signal.signal(number, signal.SIG_IGN if handler.asked and number == signal.SIGTERM else previous)
