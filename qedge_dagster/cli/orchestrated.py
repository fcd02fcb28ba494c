"""`qedge ingest` as a run of Dagster, in this process."""

from __future__ import annotations

import sqlite3
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, TextIO, cast

from dagster import BetaWarning, Definitions, Failure, JobDefinition, PreviewWarning
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.errors import DagsterUserCodeExecutionError
from dagster._core.execution.api import execute_run
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.utils import make_new_run_id
from sqlalchemy.exc import SQLAlchemyError

from qedge_dagster.cli.home import LOCATION
from qedge_dagster.cli.instance import UNAVAILABLE, faults_of, open_instance
from qedge_dagster.cli.output import note, printable
from qedge_dagster.errors import QedgeError
from qedge_dagster.orchestration.home import prepare_home
from qedge_dagster.orchestration.jobs import build_ingest_job, ingest_op_name
from qedge_dagster.orchestration.presence import end_dead_runs, present
from qedge_dagster.orchestration.recorded import record
from qedge_dagster.orchestration.resource import IngestionResource
from qedge_dagster.orchestration.settings import IngestionSettings
from qedge_dagster.orchestration.target import IngestionTarget
from qedge_dagster.pipeline import IngestionPipeline, RunResult
from qedge_dagster.pipeline.events import Event, RunFinished

__all__ = ["OrchestratedRun"]

# What Dagster says goes to the event log alone: the terminal belongs to the command.
_NO_CONSOLE = {"console": {"config": {"log_level": "CRITICAL"}}}
_SIGNAL_LATENCY = 0.2  # seconds
_ROOT = Path("/")  # the settings' paths are absolute


class OrchestratedRun:
    """One run of the ingest job. The event log gets what any run of it leaves there; the caller gets the engine's own
    events, result and errors."""

    def __init__(
        self,
        home: Path,
        settings: IngestionSettings,
        on_event: Callable[[Event], None],
        pdf_passwords: Sequence[str] = (),
    ) -> None:
        self._pdf_passwords = pdf_passwords  # apart from the settings, which are kept and shown
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
        with faults_of(self._home):
            prepare_home(self._home)
            kept = record(self._home, self._settings)
        # Dagster replaces the handlers of signals in the main thread, and in no other: the command's own hold.
        with ThreadPoolExecutor(1, thread_name_prefix="dagster") as thread:
            running = thread.submit(self._execute, kept.settings, op_config)
            # Handlers run in this thread, and a signal that another one was given does not end its wait.
            while not wait((running,), _SIGNAL_LATENCY).done:
                pass
            error = running.exception()
        result = self._result
        if result is None or result.failure is not None:
            kept.forget()
        if result is None:
            raise error or AssertionError("a run ends with a result")
        if isinstance(error, QedgeError) and error.code == UNAVAILABLE:
            note("qedge: " + printable(f"the history of this run is not complete: {error.message}"))
        return result

    def _execute(self, settings: IngestionSettings, op_config: Mapping[str, Any]) -> None:
        target = settings.target(_ROOT)
        job = self._job(settings, target)
        config = {"ops": {ingest_op_name(target): {"config": op_config}}, "loggers": _NO_CONSOLE}
        failed: BaseException | None = None
        run_id = make_new_run_id()
        with faults_of(self._home), open_instance(self._home) as instance, present(self._home, run_id):
            end_dead_runs(instance)
            run = instance.create_run_for_job(
                job, run_id=run_id, run_config=config, tags=target.run_tags, remote_job_origin=_origin(job.name)
            )
            try:
                with redirect_stderr(cast(TextIO, _Terminal(sys.stderr))):
                    execute_run(InMemoryJob(job), run, instance, raise_on_error=True)
            except Failure as failure:
                failed = failure.__cause__ or failure
            except DagsterUserCodeExecutionError as error:
                failed = error.user_exception
                if isinstance(failed, (SQLAlchemyError, sqlite3.Error)):  # the engine's own database is not read so
                    raise failed from None
        if failed is not None:
            raise failed

    def _job(self, settings: IngestionSettings, target: IngestionTarget) -> JobDefinition:
        following = self

        class Followed(IngestionResource):
            """Dagster makes another instance of a resource for each run, so what it is to know is in the class."""

            def open(self, collection: str) -> IngestionPipeline:
                pipeline = super().open(collection)
                following._opened(pipeline)
                return pipeline

            def pdf_passwords(self) -> Sequence[str]:
                return following._pdf_passwords

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


class _Terminal:
    """stderr without what Dagster writes there of an event that it cannot store: the SQL and its parameters. That the
    home fails, the command says itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if text.startswith("Exception while writing logger call") else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _origin(job: str) -> RemoteJobOrigin:
    """By which the UI finds the job of a run in the code location that `qedge ui` serves."""
    location = RegisteredCodeLocationOrigin(LOCATION)
    return RemoteJobOrigin(RemoteRepositoryOrigin(location, "__repository__"), job)
