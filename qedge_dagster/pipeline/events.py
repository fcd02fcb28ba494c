"""What the runner says while it works: one family of small values that every caller folds in its own way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from qedge_dagster.artifacts.files import StagePaths
from qedge_dagster.errors import Failure
from qedge_dagster.pipeline.results import DocumentResult, RunResult
from qedge_dagster.state import StageVersions

__all__ = [
    "PREVIEW_CHARACTERS",
    "DocumentFailed",
    "DocumentIndexed",
    "DocumentRemoved",
    "DocumentSkipped",
    "Event",
    "Phase",
    "PruneWithheld",
    "RunFinished",
    "RunStarted",
    "WindowEmbedded",
]

Phase = Literal["hash", "extract", "chunk", "embed", "artifacts", "switch"]

#: How much of a document's text is shown where the whole would be too much.
PREVIEW_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class RunStarted:
    run_id: str
    collection: str
    source_id: str
    started_utc: str


@dataclass(frozen=True, slots=True)
class DocumentSkipped:
    """Unchanged: content hash and recipe hash are those of the stored state."""

    document_id: str
    source_hash: bytes


@dataclass(frozen=True, slots=True)
class WindowEmbedded:
    """One window of a document's chunks has its vectors, durably."""

    document_id: str
    texts: int
    tokens: int
    texts_left: int


@dataclass(frozen=True, slots=True)
class DocumentIndexed:
    """The document's rows were switched. `before` is None for a document without an earlier, whole index; `artifacts`
    is empty where none are written; `preview` is how the text begins."""

    result: DocumentResult
    source_hash: bytes
    size_bytes: int
    versions: StageVersions
    before: StageVersions | None
    chunk_count: int
    page_count: int | None
    warnings: tuple[str, ...] = ()
    seconds: Mapping[Phase, float] = field(default_factory=dict)
    artifacts: StagePaths = field(default_factory=dict)
    preview: str = ""


@dataclass(frozen=True, slots=True)
class DocumentFailed:
    """Failed, `unsupported` or `no_text_layer`; rows of an earlier index are kept, or what could be read was indexed,
    and the result counts its chunks. `source_hash` is None where the document could not be read through."""

    result: DocumentResult
    failure: Failure
    source_hash: bytes | None


@dataclass(frozen=True, slots=True)
class DocumentRemoved:
    """Its rows and its state are gone, because the source no longer holds it."""

    document_id: str
    chunks_removed: int


@dataclass(frozen=True, slots=True)
class PruneWithheld:
    """Documents that were not seen are kept, for `reason`."""

    reason: str
    documents: int


@dataclass(frozen=True, slots=True)
class RunFinished:
    result: RunResult


Event: TypeAlias = (
    RunStarted
    | DocumentSkipped
    | WindowEmbedded
    | DocumentIndexed
    | DocumentFailed
    | DocumentRemoved
    | PruneWithheld
    | RunFinished
)
