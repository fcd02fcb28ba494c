"""Runs whose process is gone, though Dagster takes them for running.

With Dagster's default launcher nobody looks after a run once the machine or its code server went down with it: it stays
STARTED, keeps its place in the pool, and every later run waits for it. A run of a target that lives holds the target's
lock, except for the seconds before and after the engine. So one that has been seen without it for a while is dead.
"""

from __future__ import annotations

import json
import time

from dagster import DagsterInstance, DagsterRunStatus, RunsFilter

from qedge_dagster.orchestration.target import IngestionTarget

__all__ = ["fail_abandoned_runs"]

# Loading a model and evaluating the checks take seconds.
_GRACE_SECONDS = 60.0


def fail_abandoned_runs(instance: DagsterInstance, target: IngestionTarget, cursor: str | None) -> str:
    """To be called while nobody holds the target's lock. Ends the runs that were without it for the whole grace as
    failed. Takes and returns, as JSON, since when (Unix time) each running one is known to be without.

    Launchers that look after their runs, such as that of Kubernetes, are left to it.
    """
    if instance.run_launcher.supports_check_run_worker_health:
        return "{}"
    known: dict[str, float] = json.loads(cursor) if cursor else {}
    now = time.time()
    seen: dict[str, float] = {}
    running = RunsFilter(tags=target.run_tags, statuses=[DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING])
    for run in instance.get_runs(running):
        since = known.get(run.run_id, now)
        if now - since < _GRACE_SECONDS:
            seen[run.run_id] = since
        else:
            instance.report_run_failed(run, "The process of this run is gone. What it had committed is kept.")
    return json.dumps(seen)
