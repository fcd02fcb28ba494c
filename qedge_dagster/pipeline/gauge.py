"""Budget, stop and throttle: asked before each document and each window, so a run ends only on a committed boundary."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

from qedge_dagster.pipeline.events import DocumentFailed, DocumentIndexed, DocumentSkipped, Event, WindowEmbedded
from qedge_dagster.pipeline.options import IngestionBudget
from qedge_dagster.pipeline.stop import StopFlag, Stopped
from qedge_dagster.pipeline.throttle import Decision, Throttle

__all__ = ["Gauge"]

# Seconds between two looks at the machine in a pause, and at the stop flag in any wait.
_PAUSE = 1.0
_STOP_LATENCY = 0.05


class Gauge:
    """Every run gets something done, whatever the budget: its first document is looked at, and the first window that
    this or a later one needs is embedded. `document_id` is where the run is, for the next one to start from."""

    def __init__(self, budget: IngestionBudget, stop: StopFlag, throttle: Throttle) -> None:
        self._budget = budget
        self._stop = stop
        self._throttle = throttle
        self.document_id: str | None = None
        self._looked_at = self._worked_on = self._windows = 0
        self._chunks = self._window_chunks = self._tokens = 0
        self._start = time.monotonic()

    @contextmanager
    def excluded(self) -> Generator[None, None, None]:
        """Time spent in here, such as loading the model, is not the budget's."""
        start = time.monotonic()
        yield
        self._start += time.monotonic() - start

    def stop_requested(self) -> bool:
        return self._stop.request is not None

    def check_stop(self) -> None:
        self._stop.check()

    def before_document(self, document_id: str) -> None:
        self.document_id = document_id
        self.check_stop()
        if self.out_of_time():
            raise Stopped("suspended", "budget:duration")
        self._admission()
        self._looked_at += 1

    def out_of_time(self) -> bool:
        """Whether the next document would be past the budget's duration."""
        return self._looked_at > 0 and self._duration_over()

    def before_work(self) -> None:
        """The document is new or changed."""
        budget = self._budget
        if budget.max_documents is not None and self._worked_on >= budget.max_documents:
            raise Stopped("suspended", "budget:documents")
        self._check_amounts()
        self._worked_on += 1

    def before_window(self) -> int:
        """Returns how many texts it may have at most."""
        self.check_stop()
        if self._windows > 0:
            if self._duration_over():
                raise Stopped("suspended", "budget:duration")
            self._check_amounts()
        decision = self._admission()
        self._sleep(decision.delay)
        return decision.batch

    def count(self, event: Event) -> None:
        if isinstance(event, WindowEmbedded):
            self._windows += 1
            self._window_chunks += event.texts
            self._tokens += event.tokens
        elif isinstance(event, (DocumentIndexed, DocumentFailed)):
            self._chunks += event.result.chunks_added
            self._window_chunks = 0
        elif isinstance(event, DocumentSkipped):
            self._window_chunks = 0

    def _admission(self) -> Decision:
        """What the throttle allows, when it allows anything."""
        decision = self._throttle.decision()
        while decision.pause and decision.reason is not None:
            if not self._throttle.waits:
                raise Stopped("suspended", decision.reason)
            if self._duration_over():
                raise Stopped("suspended", "budget:duration")
            self._sleep(_PAUSE)
            decision = self._throttle.decision()
        return decision

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.check_stop()
            time.sleep(min(left, _STOP_LATENCY))

    def _duration_over(self) -> bool:
        limit = self._budget.max_duration
        return limit is not None and time.monotonic() - self._start >= limit

    def _check_amounts(self) -> None:
        budget = self._budget
        if budget.max_chunks is not None and self._chunks + self._window_chunks >= budget.max_chunks:
            raise Stopped("suspended", "budget:chunks")
        if budget.max_tokens is not None and self._tokens >= budget.max_tokens:
            raise Stopped("suspended", "budget:tokens")
