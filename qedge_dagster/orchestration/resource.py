"""The resource that opens the engine."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from dagster import Config, ConfigurableResource
from pydantic import Field

from qedge_dagster.artifacts.files import default_root
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.schema import check_file, read_spec
from qedge_dagster.embedding import OnnxEmbedder, default_embedder
from qedge_dagster.embedding.base import Embedder
from qedge_dagster.extractors.base import Extractor
from qedge_dagster.pipeline import IngestionBudget, IngestionOptions, IngestionPipeline
from qedge_dagster.state import StateStore

__all__ = ["BudgetConfig", "IngestionResource"]


class BudgetConfig(Config):
    """How much one run may do; a limit that is left out does not hold."""

    max_duration: float | None = Field(default=None, description="Seconds, from when the model is loaded.")
    max_documents: int | None = Field(default=None, description="Documents that needed work.")
    max_chunks: int | None = Field(default=None, description="Chunks added.")
    max_tokens: int | None = Field(default=None, description="Tokens, as the embedder counts them.")

    def budget(self) -> IngestionBudget:
        return IngestionBudget(self.max_duration, self.max_documents, self.max_chunks, self.max_tokens)


class IngestionResource(ConfigurableResource):  # type: ignore[type-arg]  # a resource that provides itself
    """Opens the pipeline of a collection in `database`. Subclass it to bring an embedder, extractors or options of your
    own: each is a method to override."""

    database: str = Field(description="Path of the SQLite file; its folder must exist.")
    model_folder: str | None = Field(
        default=None, description="Folder with model.onnx and its tokenizer; the default model where it is left out."
    )
    profile: str | None = Field(default=None, description="Profile of the model in model_folder.")
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
    lock_wait: float = Field(default=60.0, description="Seconds to wait for another run of the same source to end.")

    def embedder(self) -> Embedder:
        if self.model_folder is not None:
            return OnnxEmbedder.from_folder(Path(self.model_folder), self.profile)
        return default_embedder()

    def extractors(self) -> Sequence[Extractor]:
        """Come before the built-in ones."""
        return ()

    def options(self) -> IngestionOptions:
        return IngestionOptions()

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
        """What is recorded of a collection, to read; None where there is no such collection yet."""
        if not Path(self.database).exists():
            yield None
            return
        with closing(Database(self.database, read_only=True)) as database:
            known = read_spec(database, collection) is not None and check_file(database)
            yield StateStore(database, collection) if known else None
