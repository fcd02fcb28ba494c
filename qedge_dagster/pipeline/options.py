"""What a caller may choose: frozen, validated when made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from qedge_dagster.chunking.base import ChunkingOptions
from qedge_dagster.collection.connection import Synchronous
from qedge_dagster.collection.schema import Distance, FtsTokenizer
from qedge_dagster.errors import QedgeError
from qedge_dagster.pipeline.stop import StopBudget

__all__ = ["IngestionBudget", "IngestionOptions", "RunOptions"]


@dataclass(frozen=True, slots=True)
class IngestionBudget:
    """How much one run may do; None is no limit. Checked before each document and each embedding window, so a run ends
    on a committed boundary a little past a limit, and does at least one window.

    `max_documents` counts documents that needed work; `max_duration` is in seconds and starts when the model is loaded;
    `max_tokens` is what the embedder reports.
    """

    max_duration: float | None = None
    max_documents: int | None = None
    max_chunks: int | None = None
    max_tokens: int | None = None

    UNLIMITED: ClassVar[IngestionBudget]
    QUICK: ClassVar[IngestionBudget]
    BACKGROUND: ClassVar[IngestionBudget]

    def __post_init__(self) -> None:
        for name in ("max_duration", "max_documents", "max_chunks", "max_tokens"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise QedgeError(6005, f"{name} must be positive, not {value}")


IngestionBudget.UNLIMITED = IngestionBudget()
IngestionBudget.QUICK = IngestionBudget(max_duration=20.0)
IngestionBudget.BACKGROUND = IngestionBudget(max_duration=300.0)


@dataclass(frozen=True, slots=True)
class IngestionOptions:
    """What holds for a pipeline as long as it is open. Distance, full-text tokenizer and first migration matter when
    the collection is made, and are checked against it afterwards.

    `extraction_seconds` and `extraction_memory` (bytes) are what one document may take whose format is extracted in a
    process of its own, as PDF and DOCX are; one that takes more fails with 6102.

    With `throttle="machine"` a run takes smaller windows, or pauses, where memory, heat or power ask for it
    (`throttle.decide`); in a pause it is suspended, or waits. `stop` is what the end of a stopped run may take.
    """

    chunking: ChunkingOptions = field(default_factory=ChunkingOptions)
    distance: Distance = "cosine"
    fts_tokenizer: FtsTokenizer = "unicode61"
    first_migration: int = 1
    synchronous: Synchronous = "normal"
    normalize_text: bool = True
    max_document_bytes: int = 32 * 1024 * 1024
    write_batch_size: int = 32
    extraction_seconds: float = 120.0
    extraction_memory: int = 1024 * 1024 * 1024
    throttle: Literal["fixed", "machine"] = "fixed"
    when_paused: Literal["suspend", "wait"] = "suspend"
    stop: StopBudget = field(default_factory=StopBudget)

    def __post_init__(self) -> None:
        for name in ("max_document_bytes", "write_batch_size", "extraction_seconds", "extraction_memory"):
            if getattr(self, name) <= 0:
                raise QedgeError(6005, f"{name} must be positive, not {getattr(self, name)}")
        if self.synchronous not in ("normal", "full"):
            raise QedgeError(6005, f"synchronous must be normal or full, not {self.synchronous!r}")
        if self.throttle not in ("fixed", "machine"):
            raise QedgeError(6005, f"throttle must be fixed or machine, not {self.throttle!r}")
        if self.when_paused not in ("suspend", "wait"):
            raise QedgeError(6005, f"when_paused must be suspend or wait, not {self.when_paused!r}")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What holds for one run.

    force: process every document, whatever its hashes say. rebuild: prepare vectors of another model beside the old
    ones and switch when the last is ready. delete_missing: after a completed run, remove documents that the source no
    longer holds. allow_empty: even when it holds none at all. fail_fast: the first failed document fails the run.
    strict_recipe: refuse (6009) to re-index documents because options changed. trust_timestamps: skip a document whose
    size and modification time are the stored ones without reading it.
    """

    budget: IngestionBudget = IngestionBudget.UNLIMITED
    force: bool = False
    rebuild: bool = False
    delete_missing: bool = True
    allow_empty: bool = False
    fail_fast: bool = False
    strict_recipe: bool = False
    trust_timestamps: bool = False
