"""After a run was asked to stop: leave the file as one that will not be opened again for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.writer import CollectionWriter
from qedge_dagster.pipeline.stop import StopBudget

__all__ = ["StopTimings", "wind_down"]

_MERGE_PAGES = 500
_MERGES = 4


@dataclass(frozen=True, slots=True)
class StopTimings:
    """What the steps took, in seconds."""

    boundary: float
    merge: float
    checkpoint: float

    def as_dict(self) -> dict[str, float]:
        return {name: round(seconds, 6) for name, seconds in asdict(self).items()}


def wind_down(
    database: Database,
    writer: CollectionWriter,
    budget: StopBudget,
    requested_at: float,
    record: Callable[[StopTimings], None],
    clock: Callable[[], float] = time.monotonic,
) -> StopTimings:
    """To be called at the boundary, outside of any transaction. `record` is called before the WAL is emptied, so that
    what it writes is in the file as well. `requested_at` is on `clock`."""
    at_boundary = clock()
    for _ in range(_MERGES):
        if clock() - at_boundary >= budget.merge or not writer.merge_full_text(_MERGE_PAGES):
            break
    merged = clock()
    database.checkpoint(budget.checkpoint, truncate=False)
    timings = StopTimings(at_boundary - requested_at, merged - at_boundary, clock() - merged)
    record(timings)
    database.checkpoint(max(0.0, budget.checkpoint - timings.checkpoint), truncate=True)
    return timings
