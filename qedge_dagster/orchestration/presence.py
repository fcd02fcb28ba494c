"""Which runs of the command line live: each holds a lock in the Dagster home, from before it is created to its end.

The lock of the source says less: a run has it only while the engine works. The operating system releases both when the
process dies, so a run that left its file unlocked is known to be dead, without a grace.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dagster import DagsterInstance
from filelock import FileLock, Timeout

__all__ = ["end_dead_runs", "present"]

_FOLDER, _PREFIX = "qedge", ".run-"


@contextmanager
def present(home: Path, run_id: str) -> Generator[None]:
    """Tell others that the process of a run lives, as long as the context lasts."""
    path = home / _FOLDER / f"{_PREFIX}{run_id}"
    with FileLock(path):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def end_dead_runs(instance: DagsterInstance) -> None:
    """End as failed what the runs of killed commands left unfinished in this home, whatever they had come to."""
    for path in sorted((Path(instance.root_directory) / _FOLDER).glob(f"{_PREFIX}*")):
        try:
            with FileLock(path, timeout=0):
                run = instance.get_run_by_id(path.name.removeprefix(_PREFIX))
                if run is not None and not run.is_finished:
                    instance.report_run_failed(run, "The process of this run is gone. What it had committed is kept.")
                path.unlink(missing_ok=True)
        except Timeout:
            continue
