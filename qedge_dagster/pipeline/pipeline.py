"""`IngestionPipeline`: one database and collection, opened once, run over as many sources as one likes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from qedge_dagster.artifacts.files import ArtifactFolder
from qedge_dagster.artifacts.sink import ArtifactSink
from qedge_dagster.collection import Collection
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.faults import database_error
from qedge_dagster.collection.gathering import gather_vectors
from qedge_dagster.collection.schema import check_file, create, read_spec
from qedge_dagster.collection.writer import CollectionWriter
from qedge_dagster.embedding import default_embedder
from qedge_dagster.embedding.base import Embedder
from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.base import Extractor
from qedge_dagster.pipeline.diagnostics import count_documents, diagnostics
from qedge_dagster.pipeline.doctor import Diagnosis, examine, mend
from qedge_dagster.pipeline.events import Event, RunFinished
from qedge_dagster.pipeline.gauge import Gauge
from qedge_dagster.pipeline.lock import run_lock
from qedge_dagster.pipeline.machine import Machine
from qedge_dagster.pipeline.options import IngestionBudget, IngestionOptions, RunOptions
from qedge_dagster.pipeline.rebuild import MAX_NAME, SUFFIX, abandon_rebuild, prepare_rebuild, replace_when_ready
from qedge_dagster.pipeline.results import RunResult
from qedge_dagster.pipeline.runner import Run
from qedge_dagster.pipeline.stages import Stages
from qedge_dagster.pipeline.stop import StopFlag, Stopped, StopReason, StopRequest
from qedge_dagster.pipeline.throttle import Readings, Throttle
from qedge_dagster.pipeline.winding import wind_down
from qedge_dagster.sources.base import Source, check_id
from qedge_dagster.sources.selected import SelectedDocuments
from qedge_dagster.state import StateStore

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["IngestionPipeline"]

# At the end of each run; what is left is for the next one.
_GATHERING_SECONDS = 5.0


class IngestionPipeline:
    """Brings documents of a source into a collection and keeps them right. Open with `open`, use as a context.

    One thread at a time, except for `request_stop` and `cancel`, which any thread or signal handler may call.
    """

    def __init__(
        self,
        database: Database,
        collection: str,
        embedder: Embedder | None,
        extractors: Sequence[Extractor],
        options: IngestionOptions,
        artifacts: Path | None = None,
        monitor: Callable[[], Readings] | None = None,
    ) -> None:
        self._database = database
        self._state = StateStore(database, collection)
        self._embedder = embedder
        self._extractors = tuple(extractors)
        self._artifacts = artifacts
        self._stop = StopFlag()
        self._throttle = Throttle(
            options.write_batch_size,
            (monitor or Machine()) if options.throttle == "machine" else None,
            waits=options.when_paused == "wait",
        )
        self._reader: Collection | None = None
        self.options = options

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        collection: str = "chunks",
        embedder: Embedder | None = None,
        extractors: Sequence[Extractor] = (),
        options: IngestionOptions | None = None,
        artifacts: Path | None = None,
        monitor: Callable[[], Readings] | None = None,
    ) -> IngestionPipeline:
        """Open or create the database at `path`; its folder must exist. The collection is made by the first run.

        Without an `embedder`, the default model is loaded when it is needed. `extractors` come before the built-in
        ones, and one with the id of a built-in replaces it. With a folder for `artifacts`, what each stage makes of
        each document is kept below it as Parquet files. A `monitor` takes the place of the machine's own readings.
        Raises `QedgeError` 6002 if the file cannot be opened, 6005 for a collection name that SQL could not take, 6011,
        6201, 6202, 6203 or 6204 if it holds something else under that name.
        """
        if len(collection) > MAX_NAME:
            raise QedgeError(6005, f"collection name {collection!r}: at most {MAX_NAME} characters")
        if collection.endswith(SUFFIX):
            raise QedgeError(6005, f"collection name {collection!r}: {SUFFIX} is kept for rebuilds")
        options = options or IngestionOptions()
        database = Database(path, synchronous=options.synchronous)
        try:
            if read_spec(database, collection) is not None and not check_file(database):
                raise QedgeError(6201, f"collection {collection} exists, but the file holds no ingestion state")
        except apsw.Error as error:
            database.close()
            raise database_error(error, database.path) from error
        except BaseException:
            database.close()
            raise
        return cls(database, collection, embedder, extractors, options, artifacts, monitor)

    @cached_property
    def stages(self) -> Stages:
        """What the options come to for this model. Raises `QedgeError` 6001, 6003, 6004, 6005, 6153 or 6208."""
        return Stages.resolve(self._embedder or default_embedder(), self._extractors, self.options)

    @property
    def collection(self) -> Collection:
        """The reading side, on a connection of its own. Raises `QedgeError` 6002 before the first run."""
        if self._reader is None:
            self._reader = Collection.open(
                self._database.path, self._state.collection, embedder=lambda: self.stages.embedder
            )
        return self._reader

    # runs

    def run(
        self,
        source: Source,
        *,
        budget: IngestionBudget | None = None,
        options: RunOptions | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> RunResult:
        """Ingest a source. `budget` replaces that of `options`. What went wrong within the run is in the result.

        Raises `QedgeError` for what was wrong before it: 6008 if a run of this source is active, 6012 for another
        model without `rebuild`, 6006, 6007, 6011, 6202, 6203, 6204 for a database that does not fit, and what
        `stages` raises.
        """
        options = options or RunOptions()
        if budget is not None:
            options = replace(options, budget=budget)
        return _fold(self.events(source, options), on_event)

    def events(self, source: Source, options: RunOptions, *, lock_wait: float = 0.0) -> Generator[Event, None, None]:
        """The run as it happens, `RunStarted` to `RunFinished`. A consumer that stops consuming has stopped the run, at
        a committed boundary; one that throws an exception in has failed it. `lock_wait` is how many seconds to wait for
        an active run to end. Raises as `run`."""
        source_id = check_id(source.source_id, "source id")
        if options.rebuild and isinstance(source, SelectedDocuments):
            raise QedgeError(6005, "a rebuild takes every document of its source, not selected ones")
        stages = self.stages
        with ExitStack() as stack:
            try:
                stack.enter_context(self._exclusive(source_id, lock_wait))
            except Stopped as stopped:  # while it waited for the lock
                yield self._new_run(self._state, source_id, stages.recipe.hash()).not_begun(stopped)
                return
            stack.enter_context(closing(stages.extraction))
            state = self._prepare(stages, source_id, rebuild=options.rebuild)
            run = self._new_run(state, source_id, stages.recipe.hash(), options.budget)
            events = run.ingest(source, stages, options)
            for event in events:
                if isinstance(event, RunFinished):
                    if state is not self._state and event.result.outcome == "completed":
                        event = self._finish_rebuild(event, stages, state, source_id, run.saw_everything)
                    self._wind_down(state)
                try:
                    yield event
                except Exception as error:  # thrown in by the consumer: its fault is the run's end
                    events.throw(error)

    def prune(self, source: Source, *, allow_empty: bool = False) -> RunResult:
        """Remove the documents that the source no longer holds, without reading any."""
        source_id = check_id(source.source_id, "source id")
        self._require_collection()
        with self._exclusive(source_id):
            result = _fold(self._new_run(self._state, source_id).prune(source, allow_empty=allow_empty))
            self._sweep_artifacts(source_id)
            self._gather_vectors(self._state)
            return result

    def remove(self, source_id: str, document_ids: Iterable[str]) -> RunResult:
        """Remove documents by id, whatever the source holds; the next run brings back those it still does."""
        self._require_collection()
        with self._exclusive(source_id):
            result = _fold(self._new_run(self._state, source_id).remove(document_ids))
            self._gather_vectors(self._state)
            return result

    def request_stop(self, reason: StopReason = "caller:stop") -> None:
        """End the active run as `suspended` at its next committed boundary."""
        self._stop.set(StopRequest("suspended", reason))

    def cancel(self) -> None:
        """End the active run as `cancelled` at its next committed boundary."""
        self._stop.set(StopRequest("cancelled", "lifecycle:stopping"))

    def diagnostics(self, *, counts: bool = False) -> dict[str, object]:
        """Everything one asks when something looks wrong, as one flat mapping; `counts` also counts rows."""
        return diagnostics(self._database, self._state.collection, self.stages, counts=counts)

    def counts(self) -> dict[str, int]:
        """Documents, chunks, and what is known to be outstanding: `failed`, `stale` and `recipe_stale`."""
        return count_documents(self._database, self._state, self.stages)

    def doctor(self, *, repair: bool = False, quick: bool = False) -> Diagnosis:
        """Look the collection over, and mend with `repair` what can be mended without the sources.

        Raises `QedgeError` 6002 before the first run, and with `repair` 6008 if a run is active, 6205 if the file
        cannot be written. Damage, such as 6204 stands for, is in the result.
        """
        if repair:
            return mend(self._database.path, self._state.collection, artifacts=self._artifacts)
        return examine(self._database.path, self._state.collection, quick=quick, artifacts=self._artifacts)

    # inside

    @contextmanager
    def _exclusive(self, source_id: str, lock_wait: float = 0.0) -> Generator[None, None, None]:
        """Hold the lock of a run. What SQLite raises outside of the run's own care is 6204 (damage) or 6205 (a full
        disk, another writer, a read-only file). Raises `Stopped` where a stop comes before the lock is free."""
        if self._database.spoiled:
            raise QedgeError(
                6205,
                f"an earlier run on this connection to {self._database.path} ended with a fault of the disk",
                remedy="close the pipeline, open it again and run again",
            )
        try:
            with run_lock(
                self._database.path, self._state, source_id, wait_seconds=lock_wait, check_stop=self._stop.check
            ):
                yield
        except apsw.Error as error:
            raise database_error(error, self._database.path) from error
        finally:
            self._stop.clear()

    def _prepare(self, stages: Stages, source_id: str, *, rebuild: bool) -> StateStore:
        """Make the collection ready for this model. Returns the state that the run writes to: the collection's own, or
        that of the one which is to replace it."""
        spec, model = stages.spec(self._state.collection), stages.model()
        recorded = None
        if read_spec(self._database, spec.name) is not None:
            recorded = self._state.model()
            self._state.check_hashes(source_id)
        if recorded is not None and recorded.identity != model.identity:
            if rebuild:
                return prepare_rebuild(self._database, spec, model)
            create(self._database, spec)  # raises 6006 where the dimension differs as well
            raise QedgeError(
                6012,
                f"collection {spec.name} was built with {recorded.profile_id!r}, this model is {model.profile_id!r}",
            )
        create(self._database, spec)
        if rebuild:
            abandon_rebuild(self._database, self._state)
            if self._artifacts is not None:
                ArtifactFolder(self._artifacts, self._state.collection + SUFFIX).drop()
        if self._state.model() is None:
            with self._database.atomic():
                if self._state.model() is None:
                    self._state.put_model(model)
        return self._state

    def _new_run(
        self,
        state: StateStore,
        source_id: str,
        recipe_hash: bytes | None = None,
        budget: IngestionBudget = IngestionBudget.UNLIMITED,
    ) -> Run:
        writer = CollectionWriter(self._database, state.collection)
        sink = ArtifactSink(self._artifacts, state, self._state) if self._artifacts is not None else None
        gauge = Gauge(budget, self._stop, self._throttle)
        return Run(self._database, writer, state, self._state, source_id, gauge, recipe_hash, sink)

    def _wind_down(self, state: StateStore) -> None:
        """At the end of a run; after one that was asked to stop, as far as that has time. What fails now has lost
        nothing: the next run does it."""
        reason = self._throttle.last_reason
        if reason is not None and reason != self._state.throttle_reason():
            with suppress(apsw.Error, QedgeError), self._database.atomic():
                self._state.put_throttle_reason(reason)
        self._gather_vectors(state)
        request = self._stop.request
        if request is None:
            return
        with suppress(apsw.Error, QedgeError):
            writer = CollectionWriter(self._database, state.collection)
            wind_down(self._database, writer, self._state, self.options.stop, request.at)

    def _gather_vectors(self, state: StateStore) -> None:
        if self._database.spoiled:
            return
        with suppress(apsw.Error, QedgeError):
            gather_vectors(self._database, state.collection, lambda: self._stop.request is not None, _GATHERING_SECONDS)

    def _sweep_artifacts(self, source_id: str) -> None:
        """Remove the files that a crash has left, of this source and of a rebuild that is over."""
        if self._artifacts is None:
            return
        ArtifactFolder(self._artifacts, self._state.collection).sweep(self._state, source_id)
        if read_spec(self._database, self._state.collection + SUFFIX) is None:
            ArtifactFolder(self._artifacts, self._state.collection + SUFFIX).drop()

    def _finish_rebuild(
        self, event: RunFinished, stages: Stages, state: StateStore, source_id: str, saw_everything: bool
    ) -> RunFinished:
        lost = state.lost_documents(self._state, source_id, gone=not saw_everything)
        if lost:
            warning = (
                f"the old model goes on answering, since {len(lost)} documents would be lost, {lost[0]} the first:"
                " they failed or were not seen; mend, prune or remove them and rebuild again"
            )
            return RunFinished(replace(event.result, warnings=(*event.result.warnings, warning)))
        sources = self._state.source_ids()
        if self._artifacts is not None and all(s == source_id or state.is_rebuilt(s) for s in sources):
            # Before the switch, as every file is: the versions in the names keep the old and the new apart.
            ArtifactFolder(self._artifacts, self._state.collection).adopt(
                ArtifactFolder(self._artifacts, state.collection)
            )
        left = replace_when_ready(self._database, stages.spec(self._state.collection), self._state, state, source_id)
        if not left:
            self._sweep_artifacts(source_id)
            for other in sources:
                # One whose run is active now is swept by its next prune.
                if other != source_id:
                    with suppress(QedgeError), run_lock(self._database.path, self._state, other):
                        self._sweep_artifacts(other)
            return event
        warning = f"the old model answers until these sources are rebuilt too: {', '.join(left)}"
        return RunFinished(replace(event.result, warnings=(*event.result.warnings, warning)))

    def _require_collection(self) -> None:
        if read_spec(self._database, self._state.collection) is None:
            raise QedgeError(6002, f"{self._database.path} holds no collection {self._state.collection!r}")
        self._database.enable_wal()

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._database.close()

    def __enter__(self) -> IngestionPipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _fold(events: Generator[Event, None, None], on_event: Callable[[Event], None] | None = None) -> RunResult:
    with closing(events):
        for event in events:
            if on_event is not None:
                on_event(event)
            if isinstance(event, RunFinished):
                return event.result
    raise AssertionError("a run ends with RunFinished")
