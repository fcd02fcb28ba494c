"""After a run was asked to stop: leave the file as one that will not be opened again for a while."""

from __future__ import annotations

import time

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.writer import CollectionWriter
from qedge_dagster.pipeline.stop import StopBudget
from qedge_dagster.state import StateStore

__all__ = ["wind_down"]

_MERGE_PAGES = 500
_MERGES = 4


def wind_down(
    database: Database, writer: CollectionWriter, state: StateStore, budget: StopBudget, requested_at: float
) -> None:
    """To be called at the boundary, outside of any transaction; `requested_at` is of `time.monotonic`. What the steps
    took is put on record before the WAL is emptied, so that it is in the file as well."""
    at_boundary = time.monotonic()
    for _ in range(_MERGES):
        if time.monotonic() - at_boundary >= budget.merge or not writer.merge_full_text(_MERGE_PAGES):
            break
    merged = time.monotonic()
    database.checkpoint(budget.checkpoint, truncate=False)
    written = time.monotonic()
    steps = {"boundary": at_boundary - requested_at, "merge": merged - at_boundary, "checkpoint": written - merged}
    with database.atomic():
        state.put_stop({step: round(seconds, 6) for step, seconds in steps.items()})
    database.checkpoint(max(0.0, budget.checkpoint - steps["checkpoint"]), truncate=True)
