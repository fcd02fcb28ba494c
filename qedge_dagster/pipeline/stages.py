"""The stages of a pipeline, resolved once before the first document: a budget that does not fit is said at start-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qedge_dagster.chunking import make_chunker
from qedge_dagster.chunking.base import ChunkBudget, Chunker
from qedge_dagster.collection.schema import CollectionSpec
from qedge_dagster.embedding.base import Embedder, model_identity
from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors import default_extractors
from qedge_dagster.extractors.base import Extractor, ExtractorRegistry, fingerprint
from qedge_dagster.extractors.isolation import ExtractionLimits, ExtractionProcess, isolate
from qedge_dagster.pipeline.options import IngestionOptions
from qedge_dagster.recipe import Recipe
from qedge_dagster.state import ModelRecord

__all__ = ["Stages"]


@dataclass(frozen=True, slots=True)
class Stages:
    registry: ExtractorRegistry
    budget: ChunkBudget
    chunker: Chunker
    embedder: Embedder
    recipe: Recipe
    options: IngestionOptions
    extraction: ExtractionProcess
    #: How many documents may be extracted before their turn.
    documents_ahead: int = 2

    @classmethod
    def resolve(cls, embedder: Embedder, extractors: Sequence[Extractor], options: IngestionOptions) -> Stages:
        """Given extractors come before the built-in ones; one with a built-in's id replaces it.

        Raises `QedgeError` 6001, 6003, 6004, 6005 or 6153.
        """
        given = {extractor.id for extractor in extractors}
        built_in = [extractor for extractor in default_extractors() if extractor.id not in given]
        extraction = ExtractionProcess(ExtractionLimits(options.extraction_seconds, options.extraction_memory))
        registry = ExtractorRegistry(isolate(extractor, extraction) for extractor in (*extractors, *built_in))
        for extractor in registry:
            _check_printable("extractor id", extractor.id)
        tokenizer = embedder.tokenizer
        budget = ChunkBudget.resolve(options.chunking, embedder.profile, tokenizer)
        assert tokenizer is not None  # resolve has raised 6001
        chunker = make_chunker(options.chunking, budget, tokenizer)
        _check_printable("chunker id", chunker.id)
        return cls(
            registry, budget, chunker, embedder, Recipe(embedder, chunker, options.distance), options, extraction
        )

    def recipe_hash(self, extractor: Extractor | None) -> bytes:
        """The recipe of a document that `extractor` takes; None for one that none takes."""
        if extractor is None:
            return self.recipe.hash("none:0")
        return self.recipe.hash(fingerprint(extractor) + ("" if self.options.normalize_text else "+raw"))

    def spec(self, collection: str) -> CollectionSpec:
        options = self.options
        return CollectionSpec(
            collection,
            self.embedder.profile.dimensions,
            options.distance,
            options.fts_tokenizer,
            options.first_migration,
        )

    def model(self) -> ModelRecord:
        return ModelRecord(model_identity(self.embedder), self.embedder.profile.id)


def _check_printable(what: str, value: str) -> None:
    # The recipe separates its fields by a control character.
    if not value or not value.isprintable():
        raise QedgeError(6005, f"{what} {value!r} is empty or holds control characters")
