"""The resource that opens the engine."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from dagster import (
    AssetCheckExecutionContext,
    Config,
    ConfigurableResource,
    OpExecutionContext,
    Resolvable,
    SensorEvaluationContext,
)
from pydantic import BaseModel, Field

from qedge_dagster.artifacts.files import default_root
from qedge_dagster.chunking.base import ChunkingOptions
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.schema import check_file, read_spec
from qedge_dagster.collection.snapshot import read_errors
from qedge_dagster.embedding import OnnxEmbedder, default_embedder
from qedge_dagster.embedding.base import Embedder
from qedge_dagster.extractors import default_extractors
from qedge_dagster.extractors.base import Extractor
from qedge_dagster.pipeline import IngestionBudget, IngestionOptions, IngestionPipeline
from qedge_dagster.pipeline.events import Event
from qedge_dagster.state import StateStore

if TYPE_CHECKING:
    from qedge_dagster.orchestration.target import IngestionTarget

__all__ = [
    "BudgetConfig",
    "ChunkingConfig",
    "DocxConfig",
    "IngestionResource",
    "PdfConfig",
    "PipelineSettings",
    "ingestion_of",
]


class BudgetConfig(Config, Resolvable):
    """How much one run may do; a limit that is left out does not hold."""

    max_duration: float | None = Field(default=None, gt=0, description="Seconds, from when the model is loaded.")
    max_documents: int | None = Field(default=None, gt=0, description="Documents that needed work.")
    max_chunks: int | None = Field(default=None, gt=0, description="Chunks added.")
    max_tokens: int | None = Field(default=None, gt=0, description="Tokens, as the embedder counts them.")

    def budget(self) -> IngestionBudget:
        return IngestionBudget(self.max_duration, self.max_documents, self.max_chunks, self.max_tokens)


class ChunkingConfig(Config, Resolvable):
    """How documents are cut; what is left out follows from the model."""

    chunker: Literal["auto", "markdown-heading", "plain", "token-window"] = "auto"
    max_tokens: int | None = Field(default=None, description="Largest chunk, in tokens.")
    overlap: int | None = Field(default=None, description="Tokens that pieces of one section share.")
    min_tokens: int | None = Field(default=None, description="Sections shorter than this join the next one.")
    max_characters: int | None = Field(default=None, description="Largest chunk, in characters.")
    heading_path_token_budget: int = Field(default=32, description="Tokens kept free for the headings above a chunk.")
    split_levels: list[int] = Field(default=[1, 2, 3], description="Heading levels that begin a new chunk.")
    overflow: Literal["split", "truncate", "throw"] = Field(
        default="split", description="What to do with a passage that is longer than a chunk."
    )

    def options(self) -> ChunkingOptions:
        values: dict[str, Any] = self.model_dump()
        values["split_levels"] = tuple(self.split_levels)
        return ChunkingOptions(**values)


class PdfConfig(Config, Resolvable):
    """How PDF files are read. Passwords are no setting: QEDGE_PDF_PASSWORDS in the environment has one in each line."""

    reading_order: Literal["content", "layout"] = Field(
        default="content", description="content: as the file has it. layout: column by column."
    )
    join_hyphens: bool = Field(default=True, description="Make words whole that are broken at the end of a line.")
    page_budget: float = Field(
        default=20.0,
        description="Seconds for one page; a document with a slower one fails with 6107, and keeps what was read.",
    )


class DocxConfig(Config, Resolvable):
    """How Word documents are read."""

    notes: bool = Field(default=True, description="Foot- and endnotes, each after the paragraph that calls it.")
    text_boxes: bool = Field(default=True, description="Text boxes, each after the paragraph that it hangs on.")
    headers_footers: bool = Field(default=False, description="Headers and footers, each text once, at the end.")
    hidden_text: bool = Field(default=False, description="Text that is formatted as hidden.")


class PipelineSettings(BaseModel):
    """The database, the model and the options of a pipeline. A change of what the recipe holds (the model, how
    documents are cut) indexes every document anew."""

    database: str = Field(min_length=1, description="Path of the SQLite file; its folder must exist.")
    model_folder: str | None = Field(
        default=None, description="Folder with model.onnx and its tokenizer; the default model where it is left out."
    )
    profile: str | None = Field(default=None, description="Profile of the model in model_folder.")
    chunking: ChunkingConfig = Field(default_factory=ChunkingConfig)
    pdf: PdfConfig = Field(default_factory=PdfConfig)
    docx: DocxConfig = Field(default_factory=DocxConfig)
    strict_utf8: bool = Field(default=False, description="Text files that are no UTF-8 fail with 6106.")
    max_document_bytes: int = Field(default=32 * 1024 * 1024, description="A larger document fails with 6052.")
    extraction_seconds: float = Field(
        default=120.0, description="A PDF or DOCX that takes longer to extract fails with 6102."
    )
    extraction_memory: int = Field(
        default=1024**3, description="Bytes of memory beyond which a PDF or DOCX fails with 6102."
    )
    distance: Literal["cosine", "l2"] = Field(
        default="cosine", description="How vectors are compared. Must stay as the collection was made."
    )
    fts_tokenizer: Literal["unicode61", "porter", "trigram"] = Field(
        default="unicode61",
        description="How text is split into words; trigram for Chinese, Japanese, Thai. Must stay as it was made.",
    )
    first_migration: int = Field(
        default=1, description="First of the two PRAGMA user_version numbers a new database claims."
    )
    synchronous: Literal["normal", "full"] = Field(default="normal", description="full: a power cut loses no commit.")
    throttle: Literal["fixed", "machine"] = Field(
        default="fixed", description="machine: go slower or pause where memory, heat or the battery ask for it."
    )
    when_paused: Literal["suspend", "wait"] = Field(
        default="suspend", description="With the throttle `machine`: end the run as suspended, or wait."
    )
    budget: BudgetConfig = Field(
        default_factory=BudgetConfig,
        description="Limits of a run that was launched for new and changed documents or for a full pass. A run for"
        " selected partitions has none.",
    )
    artifacts: str | None = Field(
        default=None,
        description="Folder for what each stage makes of each document, as Parquet files; `<database>.artifacts` where"
        " it is left out, and none where it is empty.",
    )
    previews: bool = Field(default=True, description="Show how each document begins in the metadata of its events.")
    delete_missing: bool = Field(default=True, description="Remove documents that the source no longer holds.")
    lock_wait: float = Field(default=60.0, description="Seconds to wait for another run of the same source to end.")


class IngestionResource(PipelineSettings, ConfigurableResource):  # type: ignore[type-arg]  # provides itself
    """Opens the pipeline of a collection in `database`. Subclass it to bring an embedder, extractors or options of your
    own, or to follow what a run does: each is a method to override."""

    def embedder(self) -> Embedder:
        if self.model_folder is not None:
            return OnnxEmbedder.from_folder(Path(self.model_folder), self.profile)
        return default_embedder()

    def extractors(self) -> Sequence[Extractor]:
        """Come before the built-in ones."""
        return default_extractors(
            strict_utf8=self.strict_utf8,
            pdf_reading_order=self.pdf.reading_order,
            pdf_join_hyphens=self.pdf.join_hyphens,
            pdf_page_budget=self.pdf.page_budget,
            pdf_passwords=self.pdf_passwords(),
            docx_notes=self.docx.notes,
            docx_text_boxes=self.docx.text_boxes,
            docx_headers_footers=self.docx.headers_footers,
            docx_hidden_text=self.docx.hidden_text,
        )

    def pdf_passwords(self) -> Sequence[str]:
        """Not a setting, as Dagster shows those to whoever opens its pages."""
        return tuple(os.environ.get("QEDGE_PDF_PASSWORDS", "").splitlines())

    def options(self) -> IngestionOptions:
        return IngestionOptions(
            chunking=self.chunking.options(),
            distance=self.distance,
            fts_tokenizer=self.fts_tokenizer,
            first_migration=self.first_migration,
            synchronous=self.synchronous,
            max_document_bytes=self.max_document_bytes,
            extraction_seconds=self.extraction_seconds,
            extraction_memory=self.extraction_memory,
            throttle=self.throttle,
            when_paused=self.when_paused,
        )

    def on_event(self, event: Event) -> None:
        """Called with each event of a run, before Dagster has it. Does nothing."""

    def artifacts_root(self) -> Path | None:
        if self.artifacts is None:
            return default_root(Path(self.database))
        return Path(self.artifacts) if self.artifacts else None

    def open(self, collection: str) -> IngestionPipeline:
        """The pipeline, to be closed by the caller. Raises as `IngestionPipeline.open` and the model's loading do."""
        return IngestionPipeline.open(
            self.database,
            collection=collection,
            embedder=self.embedder(),
            extractors=self.extractors(),
            options=self.options(),
            artifacts=self.artifacts_root(),
        )

    @contextmanager
    def state(self, collection: str) -> Generator[StateStore | None, None, None]:
        """What is recorded of a collection, to read; None where there is no such collection yet.

        Raises `QedgeError` 6204 for a damaged file, also from within the context.
        """
        if not Path(self.database).exists():
            yield None
            return
        path = Path(self.database)
        with read_errors(path), closing(Database(path, read_only=True)) as database:
            known = read_spec(database, collection) is not None and check_file(database)
            yield StateStore(database, collection) if known else None


def ingestion_of(
    context: OpExecutionContext | AssetCheckExecutionContext | SensorEvaluationContext, target: IngestionTarget
) -> IngestionResource:
    """The resource of a target, where it is known by the key alone."""
    return cast(IngestionResource, getattr(context.resources, target.resource_key))
