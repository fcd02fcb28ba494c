"""One document from its bytes to its rows. The runner owns order and outcome; this owns what is done and durable."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Literal

import apsw

from qedge_dagster.artifacts.files import StagePaths
from qedge_dagster.artifacts.sink import ArtifactSink
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.faults import database_error
from qedge_dagster.collection.writer import ChunkRow, CollectionWriter, VectorsMissing
from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.errors import CATALOGUE, SETTLED_CODES, Failure, QedgeError
from qedge_dagster.extractors.base import Extractor, fingerprint
from qedge_dagster.hashing import hash_fields
from qedge_dagster.pipeline.diff import ChunkDiff, diff_chunks, identify, stage_versions
from qedge_dagster.pipeline.embed import WindowEmbedder, windows
from qedge_dagster.pipeline.events import (
    PREVIEW_CHARACTERS,
    DocumentFailed,
    DocumentIndexed,
    DocumentSkipped,
    Event,
    Phase,
    WindowEmbedded,
)
from qedge_dagster.pipeline.fetching import extract_item, hash_item
from qedge_dagster.pipeline.gauge import Gauge, Stopped
from qedge_dagster.pipeline.options import RunOptions
from qedge_dagster.pipeline.results import DocumentOutcome, DocumentResult
from qedge_dagster.pipeline.stages import Stages
from qedge_dagster.sources.base import SourceItem
from qedge_dagster.state import DocumentRow, DocumentStatus, StageVersions, StateStore

__all__ = ["DocumentProcessor", "utc_now"]

# Of documents without chunks of their own; any other failure is "failed".
_STATUS_OF: dict[int, Literal["failed", "unsupported", "no_text_layer"]] = {6101: "unsupported", 6105: "no_text_layer"}


def utc_now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(slots=True)
class _Work:
    """What is known of a document while it is worked on."""

    item: SourceItem
    before: DocumentRow | None
    started: float
    texts_before: int
    tokens_before: int
    recipe_hash: bytes | None = None
    extractor: Extractor | None = None
    source_hash: bytes | None = None
    size_bytes: int | None = None


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
        self._damaged = frozenset(writer.damaged_documents(source_id))

    def process(self, item: SourceItem) -> Generator[Event, None, None]:
        """Yields `WindowEmbedded` for each window, then one of `DocumentSkipped`, `DocumentIndexed`, `DocumentFailed`.

        Raises `QedgeError` only for what must end the run.
        """
        work = _Work(
            item,
            self._state.document(self._source_id, item.document_id),
            time.perf_counter(),
            self.windows.texts,
            self.windows.tokens,
        )
        try:
            skipped = self._hash_gate(work)
            if skipped is not None:
                yield skipped
                return
            yield from self._index(work)
        except QedgeError as error:
            if error.code < 6050 or error.code in (6204, 6205):
                raise
            yield self._record_failure(work, error.failure())
        except UnicodeEncodeError:
            failure = Failure(6104, "the text holds lone surrogates, which no encoding can store")
            yield self._record_failure(work, failure)
        except apsw.Error as error:
            if (fault := self._database.fault(error)) is not None:
                raise fault from error
            yield self._record_failure(work, Failure(6207, f"{type(error).__name__}: {error}", CATALOGUE[6207].remedy))
        except Stopped:
            raise
        except Exception as error:
            # A fault of ours, or of a chunker of the caller's: it costs one document all the same.
            failure = Failure(6102, f"{type(error).__name__} while the document was processed")
            yield self._record_failure(work, failure)

    # gate

    def _hash_gate(self, work: _Work) -> DocumentSkipped | None:
        item, before = work.item, work.before
        work.extractor = self._select_extractor(item)
        work.recipe_hash = self._stages.recipe_hash(work.extractor)
        same_recipe = before is not None and before.recipe_hash == work.recipe_hash
        may_skip = same_recipe and not self._options.force and item.document_id not in self._damaged
        if work.extractor is None:
            # Settled by its name and the recipe alone: not worth reading.
            if may_skip and before is not None and before.status == "unsupported":
                return DocumentSkipped(item.document_id, b"")
            self._gauge.before_work()
            self._stages.registry.resolve(item)  # raises 6101
        if may_skip and before is not None and before.content_hash is not None and self._trusted(item, before):
            return DocumentSkipped(item.document_id, before.content_hash)
        work.source_hash, work.size_bytes = hash_item(item, self._stages.options)
        if before is not None and before.content_hash == work.source_hash:
            if may_skip:
                return DocumentSkipped(item.document_id, work.source_hash)
            if self._options.strict_recipe and not same_recipe:
                raise QedgeError(6009, f"document {item.document_id!r} was indexed under another recipe")
        self._gauge.before_work()
        return None

    def _select_extractor(self, item: SourceItem) -> Extractor | None:
        try:
            return self._stages.registry.resolve(item)
        except QedgeError as error:
            if error.code != 6101:
                raise
            return None

    def _trusted(self, item: SourceItem, before: DocumentRow) -> bool:
        return (
            self._options.trust_timestamps
            and item.size_bytes is not None
            and item.modified_utc is not None
            and (item.size_bytes, item.modified_utc) == (before.size_bytes, before.modified_utc)
        )

    # extract → chunk → diff → embed → switch

    def _index(self, work: _Work) -> Generator[Event, None, None]:
        seconds: dict[Phase, float] = {"hash": time.perf_counter() - work.started}
        warnings: list[str] = []
        clock = _Clock(seconds)
        assert work.recipe_hash is not None
        assert work.source_hash is not None
        with clock("extract"):
            document = self._extract(work)
            extracted = document.version()
        warnings.extend(document.warnings)
        document_id = work.item.document_id
        stored = self._state.versions(self._source_id, document_id)
        with clock("chunk"):
            rows = identify(self._source_id, document, self._stages.chunker.chunk(document, warnings.append))
            diff = diff_chunks(self._writer.stored(self._source_id, document_id), rows)
            versions = stage_versions(extracted, rows, self._stages.embedder, work.recipe_hash)
        fresh: dict[bytes, bytes] = {}
        artifacts: StagePaths = {}
        while True:
            try:
                with clock("embed"):
                    yield from self._embed_missing(document_id, diff, fresh)
                with clock("artifacts"):
                    artifacts = self._write_artifacts(work, document, rows, fresh, versions)
                with clock("switch"):
                    self._switch(work, document, len(rows), diff, versions, fresh)
                break
            except VectorsMissing:
                continue  # another source's run removed rows whose vectors were to be reused
        if self._artifacts is not None:
            self._artifacts.discard(self._source_id, document_id, stored, kept=artifacts)
        result = self._result(work, "indexed", diff=diff)
        yield DocumentIndexed(
            result,
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

    def _inputs(self, work: _Work) -> bytes:
        """All that the extracted document depends on."""
        assert work.extractor is not None
        assert work.source_hash is not None
        item = work.item
        return hash_fields(
            (
                *(work.source_hash.hex(), fingerprint(work.extractor), self._stages.options.normalize_text),
                *(item.media_type, sorted((str(k), repr(v)) for k, v in item.metadata.items())),
            )
        )

    def _write_artifacts(
        self,
        work: _Work,
        document: ExtractedDocument,
        rows: list[ChunkRow],
        fresh: dict[bytes, bytes],
        versions: StageVersions,
    ) -> StagePaths:
        if self._artifacts is None:
            return {}
        vectors = self._writer.vectors(self._source_id, work.item.document_id, rows, fresh)
        dimensions = self._stages.embedder.profile.dimensions
        inputs = self._inputs(work)
        return self._artifacts.write(self._source_id, document, rows, vectors, dimensions, versions, inputs)

    def _extract(self, work: _Work) -> ExtractedDocument:
        assert work.extractor is not None
        assert work.source_hash is not None
        if self._artifacts is not None and not self._options.force:
            known = self._artifacts.extracted(self._source_id, work.item.document_id, self._inputs(work))
            if known is not None:
                return known
        return extract_item(work.item, work.extractor, work.source_hash, self._stages.options)

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
        left = len(missing)
        for window in windows(missing, self._stages.options.write_batch_size):
            if fresh:
                with self._database.atomic():
                    self._writer.stage_vectors(self._source_id, fresh)
                fresh.clear()
            self._gauge.before_window()
            with self._gauge.excluded():
                self._stages.embedder.load()
            tokens_before = self.windows.tokens
            fresh.update(self.windows.embed(window))
            left -= len(window)
            yield WindowEmbedded(document_id, len(window), self.windows.tokens - tokens_before, left)

    def _switch(
        self,
        work: _Work,
        document: ExtractedDocument,
        chunk_count: int,
        diff: ChunkDiff,
        versions: StageVersions,
        fresh: dict[bytes, bytes],
    ) -> None:
        """Additions, removals, repairs and state in one transaction: a reader sees the old document or the new one."""
        now = utc_now()
        row = self._state_row(work, work.source_hash, document.extractor_id, chunk_count, "indexed", None, now)
        with self._database.atomic():
            model = self._state.model()
            if model is None or model.identity != self._stages.model().identity:
                raise QedgeError(6012, f"collection {self._state.collection} was given another model meanwhile")
            # Added before removed: an added chunk may take its vector from a row that goes.
            self._writer.add(self._source_id, work.item.document_id, diff.added, fresh, now)
            self._writer.stage_rows(self._source_id, diff.removed)
            self._writer.delete(diff.removed)
            self._writer.repair(diff.repaired)
            self._state.put_document(self._source_id, row)
            self._state.put_versions(self._source_id, work.item.document_id, versions)
            self._state.count_in_run(self._run_id, indexed=1, added=len(diff.added), removed=len(diff.removed))

    # outcomes

    def _record_failure(self, work: _Work, failure: Failure) -> DocumentFailed:
        """Rows of an earlier index are kept. The hash is kept only where the failure is settled by bytes and recipe."""
        status = _STATUS_OF.get(failure.code, "failed")
        digest = work.source_hash if failure.code in SETTLED_CODES else None
        extractor_id = work.extractor.id if work.extractor else None
        count = work.before.chunk_count if work.before else 0
        row = self._state_row(
            work, digest, extractor_id, count, status, str(failure).encode("utf-8", "replace").decode(), utc_now()
        )
        if work.before is None or _settled(work.before) != _settled(row):
            try:
                with self._database.atomic():
                    self._state.put_document(self._source_id, row)
            except apsw.Error as error:
                raise database_error(error, self._database.path) from error
        return DocumentFailed(self._result(work, status, failure=failure), failure, work.source_hash)

    def _state_row(
        self,
        work: _Work,
        digest: bytes | None,
        extractor_id: str | None,
        chunk_count: int,
        status: DocumentStatus,
        error: str | None,
        now: str,
    ) -> DocumentRow:
        item = work.item
        size = work.size_bytes if work.size_bytes is not None else item.size_bytes
        return DocumentRow(
            *(item.document_id, digest, work.recipe_hash, size, item.modified_utc, extractor_id),
            *(chunk_count, status, error, self._run_id, now),
        )

    def _result(
        self, work: _Work, outcome: DocumentOutcome, *, diff: ChunkDiff | None = None, failure: Failure | None = None
    ) -> DocumentResult:
        result = DocumentResult(
            work.item.document_id,
            outcome,
            extractor_id=work.extractor.id if work.extractor else None,
            texts_embedded=self.windows.texts - work.texts_before,
            tokens_embedded=self.windows.tokens - work.tokens_before,
            duration_seconds=round(time.perf_counter() - work.started, 6),
            failure=failure,
        )
        if diff is None:
            return result
        return replace(
            result,
            chunks_added=len(diff.added),
            chunks_removed=len(diff.removed),
            chunks_unchanged=diff.unchanged,
            chunks_repaired=len(diff.repaired),
        )


def _settled(row: DocumentRow) -> tuple[object, ...]:
    """What makes a failed document's state worth writing again."""
    return (row.content_hash, row.recipe_hash, row.status, row.error, row.size_bytes, row.modified_utc, row.chunk_count)


class _Clock:
    """Adds the time spent in a `with` block to a phase."""

    def __init__(self, seconds: dict[Phase, float]) -> None:
        self._seconds = seconds

    def __call__(self, phase: Phase) -> _Clock:
        self._phase: Phase = phase
        return self

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._seconds[self._phase] = self._seconds.get(self._phase, 0.0) + time.perf_counter() - self._start
