"""What a run did, in the form that Python and `--json` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from qedge_dagster.errors import Failure

__all__ = ["DocumentOutcome", "DocumentResult", "RunOutcome", "RunResult"]

RunOutcome = Literal["completed", "suspended", "cancelled", "failed"]
DocumentOutcome = Literal["indexed", "failed", "unsupported", "no_text_layer", "removed"]


@dataclass(frozen=True, slots=True)
class DocumentResult:
    """What became of one document that was not skipped."""

    document_id: str
    outcome: DocumentOutcome
    extractor_id: str | None = None
    chunks_added: int = 0
    chunks_removed: int = 0
    chunks_unchanged: int = 0
    chunks_repaired: int = 0
    texts_embedded: int = 0
    tokens_embedded: int = 0
    duration_seconds: float = 0.0
    failure: Failure | None = None

    def as_dict(self) -> dict[str, object]:
        fields: dict[str, object] = {name: getattr(self, name) for name in self.__slots__}
        fields["failure"] = self.failure.as_dict() if self.failure else None
        return fields


@dataclass(frozen=True, slots=True)
class RunResult:
    """Counts are of this run alone. `chunks_unchanged` counts only documents that were not skipped; of those,
    `chunks_repaired` had their position corrected. `vectors_reused` are vectors of added chunks that were found in the
    collection or in the windows of an earlier, interrupted run."""

    run_id: str
    collection: str
    source_id: str
    outcome: RunOutcome
    suspend_reason: str | None
    documents_seen: int
    documents_skipped: int
    documents_indexed: int
    documents_removed: int
    documents_failed: int
    chunks_added: int
    chunks_removed: int
    chunks_unchanged: int
    chunks_repaired: int
    vectors_reused: int
    texts_embedded: int
    tokens_embedded: int
    embed_calls: int
    duration_seconds: float
    recipe_hash: str
    failure: Failure | None
    documents: tuple[DocumentResult, ...]
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The fields by their names, ready for JSON."""
        fields: dict[str, object] = {name: getattr(self, name) for name in self.__slots__}
        fields["failure"] = self.failure.as_dict() if self.failure else None
        fields["documents"] = [document.as_dict() for document in self.documents]
        fields["warnings"] = list(self.warnings)
        return fields
