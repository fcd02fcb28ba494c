"""One document from its bytes to its rows. The runner owns order and outcome; this owns what is done and durable."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Literal, TypeVar

import apsw

from qedge_dagster.artifacts.files import StagePaths
from qedge_dagster.artifacts.sink import ArtifactSink
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.faults import database_error
from qedge_dagster.collection.writer import ChunkRow, CollectionWriter, StoredRow, VectorsMissing
from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.errors import Failure, QedgeError
from qedge_dagster.pipeline.ahead import ExtractionAhead
from qedge_dagster.pipeline.diff import ChunkDiff, diff_chunks, identify, stage_versions
from qedge_dagster.pipeline.embed import WindowEmbedder, by_length
from qedge_dagster.pipeline.events import (
    PREVIEW_CHARACTERS,
    DocumentFailed,
    DocumentIndexed,
    DocumentSkipped,
    Event,
    Phase,
    WindowEmbedded,
)
from qedge_dagster.pipeline.fetching import hash_item
from qedge_dagster.pipeline.gate import Gate
from qedge_dagster.pipeline.gauge import Gauge
from qedge_dagster.pipeline.options import RunOptions
from qedge_dagster.pipeline.stages import Stages
from qedge_dagster.pipeline.stop import Stopped
from qedge_dagster.pipeline.work import Clock, Work, settled, utc_now
from qedge_dagster.sources.base import SourceItem
from qedge_dagster.state import DocumentStatus, StageVersions, StateStore

__all__ = ["DocumentProcessor"]

# Of documents without chunks of their own; any other failure is "failed".
_STATUS_OF: dict[int, Literal["failed", "unsupported", "no_text_layer"]] = {6101: "unsupported", 6105: "no_text_layer"}

_ROWS_BETWEEN_STOPS = 256

_T = TypeVar("_T")


class DocumentProcessor:
    """Takes documents of one source into one collection. The gauge is asked before work that a budget or a stop may
    forbid; it raises to end the run there, on a committed boundary."""

    def __init__(
        self,
        database: Database,
        writer: CollectionWriter,
        state: StateStore,
        stages: Stages,
        options: RunOptions,
        run_id: str,
        source_id: str,
        gauge: Gauge,
        upcoming: Callable[[], Iterator[SourceItem]],
        artifacts: ArtifactSink | None = None,
    ) -> None:
        self._database = database
        self._writer = writer
        self._state = state
        self._stages = stages
        self._options = options
        self._run_id = run_id
        self._source_id = source_id
        self._gauge = gauge
        self._artifacts = artifacts
        self.windows = WindowEmbedder(stages.embedder)
        # A state row that claims chunks which the collection has lost must not make its document "unchanged".
        self._gate = Gate(stages, options, frozenset(writer.damaged_documents(source_id)))
        self._ahead = ExtractionAhead(stages, options, self._gate, gauge, state, artifacts, source_id, upcoming)

    def process(self, item: SourceItem) -> Generator[Event, None, None]:
        """Yields `WindowEmbedded` for each window, then one of `DocumentSkipped`, `DocumentIndexed`, `DocumentFailed`.

        Raises `QedgeError` only for what must end the run.
        """
        work = Work(item, self._state.document(self._source_id, item.document_id), self.windows)
        try:
            skipped = self._hash_gate(work)
            if skipped is not None:
                yield skipped
                return
            yield from self._index(work)
        except QedgeError as error:
            if error.code < 6050 or error.code in (6204, 6205, 6208):
                raise
            yield self._record_failure(work, error.failure())
        except UnicodeEncodeError:
            error = QedgeError(6104, "the text holds lone surrogates, which no encoding can store")
            yield self._record_failure(work, error.failure())
        except apsw.Error as error:
            if (fault := self._database.fault(error)) is not None:
                raise fault from error
            yield self._record_failure(work, QedgeError(6207, f"{type(error).__name__}: {error}").failure())
        except Stopped:
            raise
        except Exception as error:
            # A fault of ours, or of a chunker of the caller's: it costs one document all the same.
            fault = QedgeError(6102, f"{type(error).__name__} while the document was processed")
            yield self._record_failure(work, fault.failure())

    # gate

    def _hash_gate(self, work: Work) -> DocumentSkipped | None:
        item, before = work.item, work.before
        standing = self._gate.standing(item, before)
        work.extractor, work.recipe_hash = standing.extractor, standing.recipe_hash
        if work.extractor is None:
            # Settled by its name and the recipe alone: not worth reading.
            if standing.may_skip and before is not None and before.status == "unsupported":
                return DocumentSkipped(item.document_id, b"")
            self._gauge.before_work()
            self._stages.registry.resolve(item)  # raises 6101
        if standing.trusted is not None:
            return DocumentSkipped(item.document_id, standing.trusted)
        work.ahead = self._ahead.take(item)
        if work.ahead is not None:
            work.source_hash, work.size_bytes = work.ahead.source_hash, work.ahead.size_bytes
        else:
            work.source_hash, work.size_bytes = hash_item(item, self._stages.options, self._gauge.check_stop)
        if before is not None and before.content_hash == work.source_hash:
            if standing.may_skip:
                return DocumentSkipped(item.document_id, work.source_hash)
            if self._options.strict_recipe and not standing.same_recipe:
                raise QedgeError(6009, f"document {item.document_id!r} was indexed under another recipe")
        self._gauge.before_work()
        return None

    # extract → chunk → diff → embed → switch

    def _index(self, work: Work) -> Generator[Event, None, None]:
        seconds: dict[Phase, float] = {"hash": time.perf_counter() - work.started}
        if work.ahead is not None:
            seconds["hash"] += work.ahead.hash_seconds
        warnings: list[str] = []
        clock = Clock(seconds)
        assert work.recipe_hash is not None
        assert work.source_hash is not None
        with clock("extract"):
            document = self._extract(work)
            extracted = document.version()
        if work.extraction is not None:
            seconds["extract"] = max(seconds["extract"], work.extraction.seconds)
        self._ahead.advance()
        warnings.extend(document.warnings)
        document_id = work.item.document_id
        failure = document.incomplete
        stored = self._state.versions(self._source_id, document_id)
        with clock("chunk"):
            rows = identify(self._source_id, document, self._stages.chunker.chunk(document, warnings.append))
            old = list(self._writer.stored(self._source_id, document_id))
            if failure is not None and _is_better(old, whole=stored is not None, than=rows):
                raise failure.error()
            diff = diff_chunks(old, rows)
            versions = stage_versions(extracted, rows, self._stages.embedder, work.recipe_hash)
        fresh: dict[bytes, bytes] = {}
        artifacts: StagePaths = {}
        while True:
            try:
                with clock("embed"):
                    yield from self._embed_missing(document_id, diff, fresh)
                if failure is None:
                    with clock("artifacts"):
                        artifacts = self._write_artifacts(work, document, rows, fresh, versions)
                with clock("switch"):
                    self._switch(work, document, len(rows), diff, versions, fresh)
                break
            except VectorsMissing:
                continue  # another source's run removed rows whose vectors were to be reused
            except Stopped:
                self._stage(fresh)  # what was embedded serves the next run
                raise
        if self._artifacts is not None:
            self._artifacts.discard(self._source_id, document_id, stored, kept=artifacts)
        if failure is not None:
            yield DocumentFailed(work.result("failed", diff=diff, failure=failure), failure, work.source_hash)
            return
        yield DocumentIndexed(
            work.result("indexed", diff=diff),
            work.source_hash,
            work.size_bytes or 0,
            versions,
            stored,
            len(rows),
            document.page_count,
            tuple(warnings),
            seconds,
            artifacts,
            document.text[:PREVIEW_CHARACTERS],
        )

    def _write_artifacts(
        self,
        work: Work,
        document: ExtractedDocument,
        rows: list[ChunkRow],
        fresh: dict[bytes, bytes],
        versions: StageVersions,
    ) -> StagePaths:
        if self._artifacts is None:
            return {}
        vectors = self._writer.vectors(self._source_id, work.item.document_id, rows, fresh)
        dimensions = self._stages.embedder.profile.dimensions
        inputs = work.inputs(self._stages.options.normalize_text)
        return self._artifacts.write(self._source_id, document, rows, vectors, dimensions, versions, inputs)

    def _extract(self, work: Work) -> ExtractedDocument:
        assert work.extractor is not None
        assert work.source_hash is not None
        if self._artifacts is not None and not self._options.force:
            inputs = work.inputs(self._stages.options.normalize_text)
            known = self._artifacts.extracted(self._source_id, work.item.document_id, inputs)
            if known is not None:
                if work.extraction is not None:
                    work.extraction.abandon()
                return known
        if work.extraction is not None:
            return self._ahead.finish(work.extraction)
        return self._ahead.extract(work.item, work.extractor, work.source_hash)

    def _embed_missing(
        self, document_id: str, diff: ChunkDiff, fresh: dict[bytes, bytes]
    ) -> Generator[WindowEmbedded, None, None]:
        """Embed what has no vector anywhere yet. Each window but the last is staged, so that it survives; the last one
        is left in `fresh` for the switch that follows at once."""
        missing = [
            row
            for row in {row.content_hash: row for row in diff.added}.values()
            if row.content_hash not in fresh and not self._writer.has_vector(self._source_id, row.content_hash)
        ]
        ordered, done = by_length(missing), 0
        while done < len(ordered):
            self._stage(fresh)
            window = ordered[done : done + self._gauge.before_window()]
            self._ahead.advance()
            with self._gauge.excluded():
                self.windows.load()
            tokens_before = self.windows.tokens
            vectors = self.windows.embed(window, self._gauge.stop_requested)
            fresh.update(vectors)
            done += len(vectors)
            yield WindowEmbedded(document_id, len(vectors), self.windows.tokens - tokens_before, len(ordered) - done)
            if len(vectors) < len(window):  # a stop came meanwhile
                self._stage(fresh)
                self._gauge.check_stop()

    def _stage(self, fresh: dict[bytes, bytes]) -> None:
        if fresh:
            with self._database.atomic():
                self._writer.stage_vectors(self._source_id, fresh)
            fresh.clear()

    def _switch(
        self,
        work: Work,
        document: ExtractedDocument,
        chunk_count: int,
        diff: ChunkDiff,
        versions: StageVersions,
        fresh: dict[bytes, bytes],
    ) -> None:
        """Additions, removals, repairs and state in one transaction: a reader sees the old document or the new one."""
        now, failure = utc_now(), document.incomplete
        status: DocumentStatus = "indexed" if failure is None else "failed"
        row = work.state_row(
            status, chunk_count, self._run_id, now, extractor_id=document.extractor_id, failure=failure
        )
        with self._database.atomic():
            model = self._state.model()
            if model is None or model.identity != self._stages.model().identity:
                raise QedgeError(6012, f"collection {self._state.collection} was given another model meanwhile")
            # Added before removed: an added chunk may take its vector from a row that goes.
            for added in self._until_stopped(diff.added):
                self._writer.add(self._source_id, work.item.document_id, added, fresh, now)
            for removed in self._until_stopped(diff.removed):
                self._writer.stage_rows(self._source_id, removed)
                self._writer.delete(removed)
            for repaired in self._until_stopped(diff.repaired):
                self._writer.repair(repaired)
            self._state.put_document(self._source_id, row)
            if failure is None:
                self._state.put_versions(self._source_id, work.item.document_id, versions)
            else:  # they are of whole documents
                self._state.delete_versions(self._source_id, work.item.document_id)
            self._state.count_in_run(
                self._run_id, indexed=int(failure is None), added=len(diff.added), removed=len(diff.removed)
            )

    def _until_stopped(self, rows: Sequence[_T]) -> Iterator[Sequence[_T]]:
        """The rows, some at a time. A stop meanwhile raises `Stopped`, which takes back what was written of a document
        that is too long to be waited for; a short one comes to its end."""
        for start in range(0, len(rows), _ROWS_BETWEEN_STOPS):
            if start:
                self._gauge.check_stop()
            yield rows[start : start + _ROWS_BETWEEN_STOPS]

    # outcomes

    def _record_failure(self, work: Work, failure: Failure) -> DocumentFailed:
        """Rows of an earlier index are kept."""
        status = _STATUS_OF.get(failure.code, "failed")
        extractor_id = work.extractor.id if work.extractor else None
        count = work.before.chunk_count if work.before else 0
        row = work.state_row(status, count, self._run_id, utc_now(), extractor_id=extractor_id, failure=failure)
        if work.before is None or settled(work.before) != settled(row):
            try:
                with self._database.atomic():
                    self._state.put_document(self._source_id, row)
            except apsw.Error as error:
                raise database_error(error, self._database.path) from error
        return DocumentFailed(work.result(status, failure=failure), failure, work.source_hash)


def _is_better(old: Sequence[StoredRow], *, whole: bool, than: Sequence[ChunkRow]) -> bool:
    """Whether rows are to be kept though a part of a newer, or the same, document could be had. Of two parts, the one
    that reaches further: how far may hang on how busy the machine was."""
    reach = max((row.draft.char_end for row in than), default=0)
    return bool(old) and (whole or max(row.char_end for row in old) > reach)
