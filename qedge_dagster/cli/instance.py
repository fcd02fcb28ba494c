"""The Dagster instance of a home, for a command that owns the terminal."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import yaml
from dagster import DagsterError, DagsterInstance
from dagster._core.instance.ref import InstanceRef
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from qedge_dagster.errors import QedgeError

__all__ = ["UNAVAILABLE", "faults_of", "open_instance"]

UNAVAILABLE = 6013

# An event log grows by pages, and by shared memory of 32 KiB.
_LEAST_FREE_BYTES = 64 * 1024
# The terminal belongs to the command: no process is started to copy what it prints into a file.
_NO_COMPUTE_LOGS = {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}


@contextmanager
def faults_of(home: Path) -> Generator[None]:
    """What fails here and is not of the engine is the home's fault: its disk, its databases, its settings. It is raised
    as `QedgeError` 6013."""
    try:
        yield
    except (DagsterError, OSError, SQLAlchemyError, sqlite3.Error, yaml.YAMLError) as error:
        reason = str(error.orig if isinstance(error, DBAPIError) else error)  # without the statement
        if _is_full(home):  # of which SQLite may make an input/output error
            reason, remedy = "the disk is full", "make room on the disk, then run again: nothing committed is lost"
        else:
            remedy = None
        message = f"the Dagster home {home} cannot be used: {reason}"
        raise QedgeError(UNAVAILABLE, message, remedy=remedy) from error


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < _LEAST_FREE_BYTES
    except OSError:
        return False


@contextmanager
def open_instance(home: Path) -> Generator[DagsterInstance]:
    """The instance, if its event log can be read. Raises whatever its storage does."""
    try:
        ref = InstanceRef.from_dir(str(home), overrides={"compute_logs": _NO_COMPUTE_LOGS})
    except (TypeError, AttributeError, KeyError) as error:  # settings of a type that Dagster does not look for
        raise DagsterError(f"its dagster.yaml makes no sense ({error})") from error
    with DagsterInstance.from_ref(ref) as instance:
        # A damaged event log is found here: what goes wrong with it during a run, Dagster prints by itself.
        instance.has_dynamic_partition("-", "-")
        yield instance
