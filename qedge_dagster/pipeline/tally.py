"""Folding a run's events into its result."""

from __future__ import annotations

from typing import Any

from qedge_dagster.pipeline.embed import WindowEmbedder
from qedge_dagster.pipeline.events import DocumentFailed, DocumentIndexed, DocumentRemoved, DocumentSkipped, Event
from qedge_dagster.pipeline.results import DocumentResult, RunResult

__all__ = ["Tally"]


class Tally:
    """Counts of one run. Embedding is counted where it happens, since a failed document's windows count too."""

    def __init__(self) -> None:
        self.seen = self.skipped = self.indexed = self.removed = self.failed = 0
        self.chunks_added = self.chunks_removed = self.chunks_unchanged = self.chunks_repaired = 0
        self.vectors_reused = 0
        self.documents: list[DocumentResult] = []
        self.warnings: list[str] = []
        self.embedding: WindowEmbedder | None = None

    def count(self, event: Event) -> None:
        if isinstance(event, DocumentSkipped):
            self.skipped += 1
        elif isinstance(event, DocumentIndexed):
            self.indexed += 1
            self._count_chunks(event.result)
            self.warnings.extend(f"{event.result.document_id}: {warning}" for warning in event.warnings)
        elif isinstance(event, DocumentFailed):
            self.failed += event.result.outcome == "failed"
            self._count_chunks(event.result)
        elif isinstance(event, DocumentRemoved):
            self.removed += 1
            self.chunks_removed += event.chunks_removed
            self.documents.append(DocumentResult(event.document_id, "removed", chunks_removed=event.chunks_removed))

    def _count_chunks(self, result: DocumentResult) -> None:
        """A failed document has chunks where it was indexed in part; else it may have embedded in vain."""
        self.documents.append(result)
        self.chunks_added += result.chunks_added
        self.chunks_removed += result.chunks_removed
        self.chunks_unchanged += result.chunks_unchanged
        self.chunks_repaired += result.chunks_repaired
        if result.chunks_added:
            self.vectors_reused += result.chunks_added - result.texts_embedded

    def result(self, **facts: Any) -> RunResult:
        """`facts` are the fields of `RunResult` that are not counted here."""
        return RunResult(
            documents_seen=self.seen,
            documents_skipped=self.skipped,
            documents_indexed=self.indexed,
            documents_removed=self.removed,
            documents_failed=self.failed,
            chunks_added=self.chunks_added,
            chunks_removed=self.chunks_removed,
            chunks_unchanged=self.chunks_unchanged,
            chunks_repaired=self.chunks_repaired,
            vectors_reused=self.vectors_reused,
            texts_embedded=self.embedding.texts if self.embedding else 0,
            tokens_embedded=self.embedding.tokens if self.embedding else 0,
            embed_calls=self.embedding.calls if self.embedding else 0,
            documents=tuple(self.documents),
            warnings=tuple(self.warnings),
            **facts,
        )
