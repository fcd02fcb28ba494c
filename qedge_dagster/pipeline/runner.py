"""A run over one source: order, budget, stop, prune and outcome. Yields what happened, on committed boundaries."""

from __future__ import annotations

import time
import uuid
from collections.abc import Generator, Iterable
from contextlib import closing

import apsw

from qedge_dagster.artifacts.sink import ArtifactSink
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.faults import database_error
from qedge_dagster.collection.seen import SeenDocuments
from qedge_dagster.collection.writer import CollectionWriter
from qedge_dagster.errors import SYSTEMIC_CODES, Failure, QedgeError
from qedge_dagster.pipeline.document import DocumentProcessor
from qedge_dagster.pipeline.events import (
    DocumentFailed,
    DocumentIndexed,
    DocumentRemoved,
    DocumentSkipped,
    Event,
    PruneWithheld,
    RunFinished,
    RunStarted,
    WindowEmbedded,
)
from qedge_dagster.pipeline.gauge import Gauge
from qedge_dagster.pipeline.listing import Listing
from qedge_dagster.pipeline.options import RunOptions
from qedge_dagster.pipeline.results import RunOutcome, RunResult
from qedge_dagster.pipeline.stages import Stages
from qedge_dagster.pipeline.stop import Stopped
from qedge_dagster.pipeline.tally import Tally
from qedge_dagster.pipeline.work import utc_now
from qedge_dagster.sources.base import Source
from qedge_dagster.sources.selected import SelectedDocuments
from qedge_dagster.state import RunRow, StateStore

__all__ = ["Run"]

_SYSTEMIC_FAILURES_ALLOWED = 20
_EMBEDDING_FAILURES_ALLOWED = 3
_REMOVALS_PER_TRANSACTION = 64
_KEPT_ON_REQUEST = "documents that are gone are kept on request"


class Run:
    """One run. The caller holds the run lock and has made the collection ready.

    `runs` keeps the run's own row, under the collection's name; `writer` and `state` belong to another collection
    while a rebuild is prepared.
    """

    def __init__(
        self,
        database: Database,
        writer: CollectionWriter,
        state: StateStore,
        runs: StateStore,
        source_id: str,
        gauge: Gauge,
        recipe_hash: bytes | None = None,
        artifacts: ArtifactSink | None = None,
    ) -> None:
        self.run_id = uuid.uuid4().hex
        self._database = database
        self._writer = writer
        self._state = state
        self._runs = runs
        self._source_id = source_id
        self._recipe_hash = recipe_hash
        self._artifacts = artifacts
        self._tally = Tally()
        self._gauge = gauge
        self._unlisted: list[str] = []
        #: Whether a document that this run did not see is known to be gone.
        self.saw_everything = False
        # Runs of one chain resume one another. Prune and remove are of none, and leave its position alone.
        self._chain: str | None = None
        self._started = time.monotonic()

    # the three kinds of run

    def ingest(self, source: Source, stages: Stages, options: RunOptions) -> Generator[Event, None, None]:
        """`SelectedDocuments` are brought up to date by themselves: those that are gone are removed, and what is known
        of the others, such as where a run over all of them was suspended, stays."""
        if not isinstance(source, SelectedDocuments):
            self._chain = stages.recipe.hash().hex() + ("/force" if options.force else "")
        return self._recorded(self._ingest(source, stages, options))

    def prune(self, source: Source, *, allow_empty: bool) -> Generator[Event, None, None]:
        """Enumerate, and remove what the source no longer holds; documents are not read."""
        return self._recorded(self._prune(source, allow_empty))

    def remove(self, document_ids: Iterable[str]) -> Generator[Event, None, None]:
        """Remove documents by name, whether the source still holds them or not."""
        return self._recorded(self._remove(document_ids))

    def not_begun(self, stopped: Stopped) -> RunFinished:
        """All there is of a run that was stopped while it waited for its turn: the database has no row of it."""
        return RunFinished(self._result(stopped.outcome, stopped.reason, None))

    def _ingest(self, source: Source, stages: Stages, options: RunOptions) -> Generator[Event, None, None]:
        guard = _FailureGuard(options.fail_fast)
        with SeenDocuments(self._database) as seen:
            listing = self._listing(source, seen)
            processor = DocumentProcessor(
                self._database,
                self._writer,
                self._state,
                stages,
                options,
                self.run_id,
                self._source_id,
                self._gauge,
                listing.upcoming,
                self._artifacts,
            )
            self._tally.embedding = processor.windows
            position = self._state.resume_position(self._source_id, self._chain) if self._chain is not None else None
            for item in listing.items_from(position, self._gauge, self._state):
                if isinstance(item, DocumentFailed):
                    yield item
                    continue
                self._gauge.before_document(item.document_id)
                for event in processor.process(item):
                    yield event
                    guard.check(event)
            if isinstance(source, SelectedDocuments):
                yield from self._remove_missing(source, options.delete_missing, options.allow_empty)
                return
            yield from self._sweep(seen, options.delete_missing, options.allow_empty)
        if not guard.embedding_failed:  # a failed document's finished windows serve its next attempt
            with self._database.atomic():
                self._writer.clear_staged(self._source_id)

    def _prune(self, source: Source, allow_empty: bool) -> Generator[Event, None, None]:
        with SeenDocuments(self._database) as seen:
            for item in self._listing(source, seen).items():
                self._gauge.check_stop()
                if isinstance(item, DocumentFailed):
                    yield item
            yield from self._sweep(seen, True, allow_empty)

    def _listing(self, source: Source, seen: SeenDocuments) -> Listing:
        listing = Listing(source, seen, self._tally)
        self._unlisted = listing.unlisted
        return listing

    # removal

    def _sweep(self, seen: SeenDocuments, delete_missing: bool, allow_empty: bool) -> Generator[Event, None, None]:
        unseen = list(seen.unseen(self._state.collection, self._source_id))
        withheld = _KEPT_ON_REQUEST
        if delete_missing:
            withheld = self._doubt(source_empty=self._tally.seen == 0 and not allow_empty)
        self.saw_everything = withheld is None
        if withheld is None:
            yield from self._remove(unseen)
        elif unseen:
            if delete_missing:
                self._tally.warnings.append(f"{len(unseen)} documents that were not seen are kept: {withheld}")
            yield PruneWithheld(withheld, len(unseen))
        if self._state.unseen(self._source_id) != (left := len(unseen) if withheld else 0):
            with self._database.atomic():
                self._state.put_unseen(self._source_id, left)

    def _remove_missing(
        self, source: SelectedDocuments, delete_missing: bool, allow_empty: bool
    ) -> Generator[Event, None, None]:
        known = [document_id for document_id in sorted(source.missing) if self._is_known(document_id)]
        if unknown := sorted(source.missing.difference(known)):
            more = f", and {len(unknown) - 1} more" if len(unknown) > 1 else ""
            self._tally.warnings.append(f"{unknown[0]}{more}: neither in the source nor in the collection")
        if not known:
            return
        withheld = _KEPT_ON_REQUEST
        if delete_missing:
            withheld = self._doubt(source_empty=source.source_empty and not allow_empty)
        if withheld is None:
            yield from self._remove(known)
            return
        if delete_missing:
            self._tally.warnings.append(f"{len(known)} documents that were not seen are kept: {withheld}")
        yield PruneWithheld(withheld, len(known))

    def _is_known(self, document_id: str) -> bool:
        return self._state.document(self._source_id, document_id) is not None

    def _doubt(self, *, source_empty: bool) -> str | None:
        """Why documents that did not come are not known to be gone; None if they are."""
        if self._unlisted:
            more = f", and {len(self._unlisted) - 1} more" if len(self._unlisted) > 1 else ""
            return f"{self._unlisted[0]}{more} could not be listed"
        if source_empty:
            return "the source holds no document at all; --allow-empty (or allow_empty) empties the index on purpose"
        return None

    def _remove(self, document_ids: Iterable[str]) -> Generator[Event, None, None]:
        left = list(document_ids)
        while left:
            self._gauge.check_stop()
            batch = left[:_REMOVALS_PER_TRANSACTION]
            removed: list[DocumentRemoved] = []
            versions = {document_id: self._state.versions(self._source_id, document_id) for document_id in batch}
            with self._database.atomic():
                for number, document_id in enumerate(batch):
                    if number and self._gauge.stop_requested():  # what was removed by then is
                        batch = batch[:number]
                        break
                    if self._state.document(self._source_id, document_id) is not None:
                        count = self._writer.delete_document(self._source_id, document_id)
                        self._state.delete_document(self._source_id, document_id)
                        removed.append(DocumentRemoved(document_id, count))
                self._state.count_in_run(self.run_id, removed=sum(event.chunks_removed for event in removed))
            if self._artifacts is not None:
                for document_id in batch:
                    self._artifacts.discard(self._source_id, document_id, versions[document_id])
            left = left[len(batch) :]
            yield from removed

    # the run's own row

    def _recorded(self, events: Generator[Event, None, None]) -> Generator[Event, None, None]:
        row = RunRow(self.run_id, self._runs.collection, self._source_id, self._recipe_hash, utc_now())
        with self._database.atomic():
            self._runs.start_run(row)
        outcome: RunOutcome = "completed"
        reason: str | None = None
        failure: Failure | None = None
        try:
            yield RunStarted(self.run_id, self._runs.collection, self._source_id, row.started_utc)
            with closing(events):
                for event in events:
                    self._tally.count(event)
                    self._gauge.count(event)
                    yield event
        except Stopped as stopped:
            outcome, reason = stopped.outcome, stopped.reason
        except QedgeError as error:
            outcome, failure = "failed", error.failure()
        except apsw.Error as error:
            fault = self._database.fault(error) or database_error(error, self._database.path)
            outcome, failure = "failed", fault.failure()
        except BaseException as error:
            # The consumer has stopped consuming, an interrupt, or a fault of ours: recorded, and passed on.
            cancelled = not isinstance(error, Exception)
            self._finish("cancelled" if cancelled else "failed", None, None if cancelled else type(error).__name__)
            raise
        result_failure = self._finish(outcome, reason, str(failure) if failure else None)
        failure = failure or result_failure
        yield RunFinished(self._result("failed" if failure else outcome, reason, failure))

    def _finish(self, outcome: RunOutcome, reason: str | None, error: str | None) -> Failure | None:
        row = RunRow(
            self.run_id,
            self._runs.collection,
            self._source_id,
            self._recipe_hash,
            "",
            finished_utc=utc_now(),
            outcome=outcome,
            suspend_reason=reason,
            documents_indexed=self._tally.indexed,
            chunks_added=self._tally.chunks_added,
            chunks_removed=self._tally.chunks_removed,
            error=error,
        )
        try:
            with self._database.atomic():
                self._runs.finish_run(row)
                if self._chain is not None:
                    position = None if outcome == "completed" else self._gauge.document_id
                    self._state.put_resume_position(self._source_id, self._chain, position)
        except QedgeError as problem:
            return problem.failure()
        except apsw.Error as problem:
            return database_error(problem, self._database.path).failure()
        return None

    def _result(self, outcome: RunOutcome, reason: str | None, failure: Failure | None) -> RunResult:
        return self._tally.result(
            run_id=self.run_id,
            collection=self._runs.collection,
            source_id=self._source_id,
            outcome=outcome,
            suspend_reason=reason,
            duration_seconds=round(time.monotonic() - self._started, 6),
            recipe_hash=self._recipe_hash.hex() if self._recipe_hash else "",
            failure=failure,
        )


class _FailureGuard:
    """Ends a run whose failures look like a fault of the machine, not of the documents."""

    def __init__(self, fail_fast: bool) -> None:
        self._fail_fast = fail_fast
        self._systemic = 0
        self._embedding = 0
        self.embedding_failed = False

    def check(self, event: Event) -> None:
        """Raises `QedgeError` 6010 (or the document's own code under fail-fast), or `Stopped`."""
        if isinstance(event, (DocumentSkipped, DocumentIndexed)):
            self._systemic = 0
        if isinstance(event, (DocumentSkipped, DocumentIndexed, WindowEmbedded)):
            self._embedding = 0
        if not isinstance(event, DocumentFailed):
            return
        code = event.failure.code
        if self._fail_fast and event.result.outcome == "failed":
            raise QedgeError(code, f"{event.result.document_id}: {event.failure.message}", remedy=event.failure.remedy)
        if code == 6206:
            self.embedding_failed = True
            self._embedding += 1
            if self._embedding >= _EMBEDDING_FAILURES_ALLOWED:
                raise Stopped("suspended", "embedding:failed")
        if code in SYSTEMIC_CODES:
            self._systemic += 1
            if self._systemic >= _SYSTEMIC_FAILURES_ALLOWED:
                raise QedgeError(6010, f"{self._systemic} documents in a row failed, the last with {code}")
