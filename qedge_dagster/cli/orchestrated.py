"""`qedge ingest` as a run of Dagster, in this process."""

from __future__ import annotations

import os
import socket
import sqlite3
import warnings
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from dagster import (
    BetaWarning,
    DagsterError,
    DagsterInstance,
    DagsterRunStatus,
    Definitions,
    Failure,
    JobDefinition,
    PreviewWarning,
    RunsFilter,
)
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.errors import DagsterUserCodeExecutionError
from dagster._core.execution.api import execute_run
from dagster._core.instance.ref import InstanceRef
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from qedge_dagster.cli.output import note, printable
from qedge_dagster.errors import QedgeError
from qedge_dagster.orchestration.home import prepare_home
from qedge_dagster.orchestration.jobs import build_ingest_job, ingest_op_name
from qedge_dagster.orchestration.recorded import record
from qedge_dagster.orchestration.resource import IngestionResource
from qedge_dagster.orchestration.settings import IngestionSettings
from qedge_dagster.orchestration.target import IngestionTarget
from qedge_dagster.pipeline import IngestionPipeline, RunResult
from qedge_dagster.pipeline.events import Event, RunFinished

__all__ = ["OrchestratedRun"]

# The terminal belongs to the command: what Dagster says goes to the event log alone, and no process is started to copy
# what the command prints into a file.
_NO_COMPUTE_LOGS = {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}
_NO_CONSOLE = {"console": {"config": {"log_level": "CRITICAL"}}}

_PROCESS_TAG = "qedge/process"
_UNFINISHED = [DagsterRunStatus.NOT_STARTED, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]
_UNAVAILABLE = 6013
_ROOT = Path("/")  # the settings' paths are absolute


class OrchestratedRun:
    """One run of the ingest job. The event log gets what any run of it leaves there; the caller gets the engine's own
    events, result and errors."""

    def __init__(self, home: Path, settings: IngestionSettings, on_event: Callable[[Event], None]) -> None:
        self._home = home
        self._settings = settings
        self._on_event = on_event
        self._pipeline: IngestionPipeline | None = None
        self._cancelled = False
        self._result: RunResult | None = None

    def cancel(self) -> None:
        """Stop at the next boundary, or as soon as the pipeline is open. A signal handler may call it."""
        self._cancelled = True
        if self._pipeline is not None:
            self._pipeline.cancel()

    def run(self, op_config: Mapping[str, Any]) -> RunResult:
        """`op_config` is that of the ingest op. Raises what the engine raises, and `QedgeError` 6013 where the home
        cannot be used; one that fails once the work is done costs its history and a line on stderr."""
        with _faults_of(self._home):
            prepare_home(self._home)
            kept = record(self._home, self._settings)
        # Dagster replaces the handlers of signals in the main thread, and in no other: the command's own hold.
        with ThreadPoolExecutor(1, thread_name_prefix="dagster") as thread:
            error = thread.submit(self._execute, kept.settings, op_config).exception()
        result = self._result
        if result is None or result.failure is not None:
            kept.forget()
        if result is None:
            raise error or AssertionError("a run ends with a result")
        if isinstance(error, QedgeError) and error.code == _UNAVAILABLE:
            note("qedge: " + printable(f"the history of this run is not complete: {error.message}"))
        return result

    def _execute(self, settings: IngestionSettings, op_config: Mapping[str, Any]) -> None:
        target = settings.target(_ROOT)
        job = self._job(settings, target)
        config = {"ops": {ingest_op_name(target): {"config": op_config}}, "loggers": _NO_CONSOLE}
        tags = {**target.run_tags, _PROCESS_TAG: _process()}
        with _faults_of(self._home), _open_instance(self._home) as instance:
            # A damaged event log is found here: what goes wrong with it during a run, Dagster prints by itself.
            instance.has_dynamic_partition(target.partitions_name, "-")
            _end_abandoned_runs(instance, target)
            run = instance.create_run_for_job(job, run_config=config, tags=tags, remote_job_origin=_origin(job.name))
            try:
                execute_run(InMemoryJob(job), run, instance, raise_on_error=True)
            except Failure as failure:
                raise failure.__cause__ or failure from None
            except DagsterUserCodeExecutionError as error:
                raise error.user_exception from None

    def _job(self, settings: IngestionSettings, target: IngestionTarget) -> JobDefinition:
        following = self

        class Followed(IngestionResource):
            """Dagster makes another instance of a resource for each run, so what it is to know is in the class."""

            def open(self, collection: str) -> IngestionPipeline:
                pipeline = super().open(collection)
                following._opened(pipeline)
                return pipeline

            def on_event(self, event: Event) -> None:
                following._follow(event)

        # Whoever waits for the lock of another run on a terminal would not know why.
        resource = settings.model_copy(update={"lock_wait": 0.0}).resource(_ROOT, Followed)
        job = build_ingest_job(target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BetaWarning)
            warnings.simplefilter("ignore", PreviewWarning)
            return Definitions(jobs=[job], resources={target.resource_key: resource}).resolve_job_def(job.name)

    def _opened(self, pipeline: IngestionPipeline) -> None:
        self._pipeline = pipeline
        if self._cancelled:
            pipeline.cancel()

    def _follow(self, event: Event) -> None:
        self._on_event(event)
        if isinstance(event, RunFinished):
            self._result = event.result


@contextmanager
def _faults_of(home: Path) -> Generator[None]:
    """What fails here and is not of the engine is the home's fault: its disk, its databases, its settings."""
    try:
        yield
    except (DagsterError, OSError, SQLAlchemyError, sqlite3.Error, yaml.YAMLError) as error:
        reason = str(error.orig if isinstance(error, DBAPIError) else error)  # without the statement
        raise QedgeError(_UNAVAILABLE, f"the Dagster home {home} cannot be used: {reason}") from error


def _open_instance(home: Path) -> DagsterInstance:
    return DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides={"compute_logs": _NO_COMPUTE_LOGS}))


def _origin(job: str) -> RemoteJobOrigin:
    """By which the UI finds the job of a run in the code location that `qedge ui` serves."""
    location = RegisteredCodeLocationOrigin("qedge_dagster.orchestration.location")
    return RemoteJobOrigin(RemoteRepositoryOrigin(location, "__repository__"), job)


def _process() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _end_abandoned_runs(instance: DagsterInstance, target: IngestionTarget) -> None:
    """A command that was killed leaves its run STARTED, and the sensor would wait for its end for ever."""
    for run in instance.get_runs(RunsFilter(tags=target.run_tags, statuses=_UNFINISHED)):
        host, _, process = run.tags.get(_PROCESS_TAG, "").rpartition(":")
        if host == socket.gethostname() and not _is_alive(int(process)):
            instance.report_run_failed(run, "The process of this run is gone. What it committed is kept.")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
