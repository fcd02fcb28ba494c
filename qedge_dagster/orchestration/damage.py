"""A database that a run has found damaged: until it is another file, more runs would come to nothing."""

from __future__ import annotations

import os

from dagster import DagsterInstance, RunsFilter

from qedge_dagster.orchestration.target import IngestionTarget

__all__ = ["known_damage", "tag_damage"]

_TAG = "qedge/damaged_database"


def tag_damage(instance: DagsterInstance, run_id: str, database: str) -> None:
    """Say which file it was. To be called when the run has closed it."""
    instance.add_run_tags(run_id, {_TAG: _identity(database)})


def known_damage(instance: DagsterInstance, target: IngestionTarget, database: str) -> bool:
    """Whether the target's latest run has found this very file damaged, and nobody has written to it since."""
    latest = instance.get_runs(RunsFilter(tags=target.run_tags), limit=1)
    return bool(latest) and latest[0].tags.get(_TAG) == _identity(database)


def _identity(database: str) -> str:
    try:
        facts = os.stat(database)
    except OSError:
        return "gone"
    return f"{facts.st_ino}-{facts.st_size}-{facts.st_mtime_ns}"
