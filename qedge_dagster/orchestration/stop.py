"""How a run under Dagster ends before its end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from dagster import DagsterInstance, DagsterRunStatus

__all__ = ["report_canceling", "signals_stop", "tag_outcome"]


class SignalRequest:
    """Whether a signal came, and what to call then: told as soon as it exists, even when the signal came before."""

    def __init__(self) -> None:
        self._came = False
        self._stop: Callable[[], None] | None = None

    def came(self) -> None:
        self._came = True
        if self._stop is not None:
            self._stop()

    def calls(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        if self._came:
            stop()


@contextmanager
def signals_stop() -> Generator[SignalRequest, None, None]:
    """SIGINT and SIGTERM are only a request while the context lasts.

    Dagster's own handlers raise, at whatever instruction the signal finds: within the write of an event that leaves a
    failed run or a locked database. Both executors deliver a termination as one of these signals. Outside of the main
    thread there are no handlers to replace, and Dagster installs none.
    """
    request = SignalRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def handler(_signal: int, _frame: FrameType | None) -> None:
        request.came()

    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in previous:
            signal.signal(number, handler)
        yield request
    finally:
        for number, old in previous.items():
            signal.signal(number, old)


def tag_outcome(instance: DagsterInstance, run_id: str, outcome: str, reason: str | None) -> None:
    """Say how the run of the engine ended, unless it simply completed."""
    if outcome != "completed":
        reason_tag = {"qedge/suspend_reason": reason} if reason else {}
        instance.add_run_tags(run_id, {"qedge/outcome": outcome, **reason_tag})


def report_canceling(instance: DagsterInstance, run_id: str) -> None:
    """See that Dagster takes the interrupt that follows for a cancellation: in a run that is not CANCELING, it would be
    a failure."""
    run = instance.get_run_by_id(run_id)
    if run is not None and run.status not in (DagsterRunStatus.CANCELING, DagsterRunStatus.CANCELED):
        instance.report_run_canceling(run, message="The run stopped on a committed boundary.")
