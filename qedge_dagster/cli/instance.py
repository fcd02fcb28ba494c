"""The Dagster instance of a home, for a command that owns the terminal."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import yaml
from dagster import DagsterError, DagsterInstance, DagsterRunStatus, RunsFilter
from dagster._core.instance.ref import InstanceRef
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from qedge_dagster.errors import QedgeError

__all__ = ["PROCESS_TAG", "UNAVAILABLE", "faults_of", "open_instance", "this_process"]

UNAVAILABLE = 6013

#: On the runs that are no child of Dagster's services: host and id of their process.
PROCESS_TAG = "qedge/process"

# The terminal belongs to the command: no process is started to copy what it prints into a file.
_NO_COMPUTE_LOGS = {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}
_UNFINISHED = [DagsterRunStatus.NOT_STARTED, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]


@contextmanager
def faults_of(home: Path) -> Generator[None]:
    """What fails here and is not of the engine is the home's fault: its disk, its databases, its settings. It is raised
    as `QedgeError` 6013."""
    try:
        yield
    except (DagsterError, OSError, SQLAlchemyError, sqlite3.Error, yaml.YAMLError) as error:
        reason = str(error.orig if isinstance(error, DBAPIError) else error)  # without the statement
        raise QedgeError(UNAVAILABLE, f"the Dagster home {home} cannot be used: {reason}") from error


@contextmanager
def open_instance(home: Path) -> Generator[DagsterInstance]:
    """The instance, without runs that only seem to go on. Raises whatever its storage does."""
    ref = InstanceRef.from_dir(str(home), overrides={"compute_logs": _NO_COMPUTE_LOGS})
    with DagsterInstance.from_ref(ref) as instance:
        # A damaged event log is found here: what goes wrong with it during a run, Dagster prints by itself.
        instance.has_dynamic_partition("-", "-")
        _end_abandoned_runs(instance)
        yield instance


def this_process() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _end_abandoned_runs(instance: DagsterInstance) -> None:
    """A command that was killed leaves its run STARTED, and the sensor would wait for its end for ever."""
    for run in instance.get_runs(RunsFilter(statuses=_UNFINISHED)):
        host, _, process = run.tags.get(PROCESS_TAG, "").rpartition(":")
        if host == socket.gethostname() and not _is_alive(int(process)):
            instance.report_run_failed(run, "The process of this run is gone. What it committed is kept.")


def _is_alive(process: int) -> bool:
    if os.name == "nt":  # where signal 0 is Ctrl-C
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
