"""After a run was asked to stop: leave the file as one that will not be opened again for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.writer import CollectionWriter
from qedge_dagster.errors import QedgeError

__all__ = ["StopBudget", "StopTimings", "wind_down"]

_MERGE_PAGES = 500
_MERGES = 4
_MAX_GRACE = 2.0


@dataclass(frozen=True, slots=True)
class StopBudget:
    """What the steps of a stop may take, in seconds: the way to the next committed boundary (at most 2), merging the
    full-text index, and writing the WAL into the database. Together they must fit `deadline`, which is what whoever
    stops the process allows before it kills it."""

    grace: float = 0.75
    merge: float = 2.0
    checkpoint: float = 1.0
    deadline: float = 5.0

    def __post_init__(self) -> None:
        steps = (self.grace, self.merge, self.checkpoint)
        if not all(seconds > 0 for seconds in (*steps, self.deadline)):
            raise QedgeError(6005, "the seconds of a stop must be positive")
        if self.grace > _MAX_GRACE:
            raise QedgeError(6005, f"a grace of {self.grace:g} s is more than {_MAX_GRACE:g} s")
        if sum(steps) > self.deadline:
            raise QedgeError(
                6005,
                f"a stop may take {self.grace:g} + {self.merge:g} + {self.checkpoint:g} = {sum(steps):g} s (grace, merge, "
                f"checkpoint), which does not fit the deadline of {self.deadline:g} s",
            )


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
