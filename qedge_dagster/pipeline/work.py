"""A document while it is worked on: what is known of it, and what is recorded and said of it in the end."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from qedge_dagster.errors import SETTLED_CODES, Failure
from qedge_dagster.extractors.base import Extractor, fingerprint
from qedge_dagster.extractors.isolation import Extraction
from qedge_dagster.hashing import hash_fields
from qedge_dagster.pipeline.ahead import ReadAhead
from qedge_dagster.pipeline.diff import ChunkDiff
from qedge_dagster.pipeline.embed import WindowEmbedder
from qedge_dagster.pipeline.events import Phase
from qedge_dagster.pipeline.results import DocumentOutcome, DocumentResult
from qedge_dagster.sources.base import SourceItem
from qedge_dagster.state import DocumentRow, DocumentStatus

__all__ = ["Clock", "Work", "settled", "utc_now"]


def utc_now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(slots=True)
class Work:
    item: SourceItem
    before: DocumentRow | None
    windows: WindowEmbedder
    started: float = field(default_factory=time.perf_counter)
    recipe_hash: bytes | None = None
    extractor: Extractor | None = None
    source_hash: bytes | None = None
    size_bytes: int | None = None
    ahead: ReadAhead | None = None
    _texts_before: int = field(init=False)
    _tokens_before: int = field(init=False)

    def __post_init__(self) -> None:
        self._texts_before, self._tokens_before = self.windows.texts, self.windows.tokens

    @property
    def extraction(self) -> Extraction | None:
        return self.ahead.extraction if self.ahead is not None else None

    def inputs(self, normalize_text: bool) -> bytes:
        """All that the extracted document depends on."""
        assert self.extractor is not None
        assert self.source_hash is not None
        item = self.item
        return hash_fields(
            (
                *(self.source_hash.hex(), fingerprint(self.extractor), normalize_text),
                *(item.media_type, sorted((str(k), repr(v)) for k, v in item.metadata.items())),
            )
        )

    def state_row(
        self,
        status: DocumentStatus,
        chunk_count: int,
        run_id: str,
        now: str,
        *,
        extractor_id: str | None,
        failure: Failure | None = None,
    ) -> DocumentRow:
        """After a failure the hash is kept only where that is settled by bytes and recipe."""
        tried_again = failure is not None and failure.code not in SETTLED_CODES
        return DocumentRow(
            self.item.document_id,
            None if tried_again else self.source_hash,
            self.recipe_hash,
            self.size_bytes if self.size_bytes is not None else self.item.size_bytes,
            self.item.modified_utc,
            extractor_id,
            chunk_count,
            status,
            str(failure).encode("utf-8", "replace").decode() if failure is not None else None,
            run_id,
            now,
        )

    def result(
        self, outcome: DocumentOutcome, *, diff: ChunkDiff | None = None, failure: Failure | None = None
    ) -> DocumentResult:
        result = DocumentResult(
            self.item.document_id,
            outcome,
            extractor_id=self.extractor.id if self.extractor else None,
            texts_embedded=self.windows.texts - self._texts_before,
            tokens_embedded=self.windows.tokens - self._tokens_before,
            duration_seconds=round(time.perf_counter() - self.started, 6),
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


def settled(row: DocumentRow) -> tuple[object, ...]:
    """What makes a failed document's state worth writing again."""
    return (row.content_hash, row.recipe_hash, row.status, row.error, row.size_bytes, row.modified_utc, row.chunk_count)


class Clock:
    """Adds the time spent in a `with` block to a phase."""

    def __init__(self, seconds: dict[Phase, float]) -> None:
        self._seconds = seconds

    def __call__(self, phase: Phase) -> Clock:
        self._phase: Phase = phase
        return self

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._seconds[self._phase] = self._seconds.get(self._phase, 0.0) + time.perf_counter() - self._start
