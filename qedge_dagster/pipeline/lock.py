"""One run per (database, collection, source), across processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from qedge_dagster.errors import QedgeError
from qedge_dagster.hashing import hash_fields
from qedge_dagster.state import StateStore

__all__ = ["is_locked", "lock_path", "run_lock"]

# How long the holder may take from getting the lock to recording its run.
_RECORD_SECONDS = 2.0
# One try for the lock, so long that a look at it (`is_locked`) does not make a run believe that another one is active,
# and so short that a stop is heard between two of them.
_TRY_SECONDS = 0.2


def lock_path(database: Path, collection: str, source_id: str) -> Path:
    """The lock file lies beside the database and stays there: removing it would race with another run's start."""
    database = database.resolve()
    return database.with_name(f"{database.name}-{hash_fields((collection, source_id)).hex()[:12]}.lock")


@contextmanager
def run_lock(
    database: Path,
    state: StateStore,
    source_id: str,
    *,
    wait_seconds: float = 0.0,
    check_stop: Callable[[], None] = lambda: None,
) -> Generator[None, None, None]:
    """Hold the lock of a run. The operating system releases it when the holder dies, however it dies.

    Raises `QedgeError` 6008 naming the active run if the lock is not free within `wait_seconds`, and what `check_stop`,
    which is called again and again meanwhile, raises.
    """
    lock = FileLock(lock_path(database, state.collection, source_id), timeout=_TRY_SECONDS)
    deadline = time.monotonic() + wait_seconds
    try:
        while not _acquired(lock):
            if time.monotonic() >= deadline:
                raise QedgeError(6008, f"{_active_run(state, source_id)} holds source {source_id!r}")
            check_stop()
    except OSError as error:
        raise QedgeError(6205, f"the lock file {lock.lock_file} cannot be written: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def is_locked(database: Path, collection: str, source_id: str) -> bool:
    """Whether a run holds the lock now."""
    lock = FileLock(lock_path(database, collection, source_id), timeout=0)
    try:
        with lock:
            return False
    except Timeout:
        return True


def _acquired(lock: FileLock) -> bool:
    try:
        lock.acquire()
    except Timeout:
        return False
    return True


def _active_run(state: StateStore, source_id: str) -> str:
    deadline = time.monotonic() + _RECORD_SECONDS
    while True:
        run = state.active_run(source_id)
        if run is not None:
            return f"run {run.run_id}, active since {run.started_utc},"
        if time.monotonic() > deadline:
            return "another process"
        time.sleep(0.05)
