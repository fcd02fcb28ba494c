"""The contract of an embedder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from qedge_dagster.embedding.profiles import ModelProfile
from qedge_dagster.hashing import hash_fields

if TYPE_CHECKING:
    import numpy as np

    from qedge_dagster.chunking.tokenizer import Tokenizer

__all__ = ["BatchwiseEmbedder", "Embedder", "EmbeddingBatch", "model_identity"]


@dataclass(frozen=True, slots=True)
class EmbeddingBatch:
    """`vectors` is float32 of shape (texts, dimensions), each of unit length; `tokens` is what the model was fed,
    prefix and special tokens included, padding not."""

    vectors: np.ndarray
    tokens: int


class Embedder(Protocol):
    """Texts → vectors. The document prefix is applied here and nowhere else."""

    @property
    def profile(self) -> ModelProfile: ...

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer that the encoder encodes with; the chunker counts with the same one."""
        ...

    @property
    def model_hash(self) -> str | None:
        """Hex hash of the model file, or None where there is no file: then the profile's id stands for it."""
        ...

    @property
    def batch_invariance(self) -> float | None:
        """The largest difference that the rest of a batch makes to a vector, found by a self-check; None if unknown."""
        ...

    def load(self) -> None:
        """Make the model ready, if it is not. Called before each window, so that a budget's clock leaves it out."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> EmbeddingBatch:
        """Vectors in the order of `texts`. Anything raised counts as a failed call."""
        ...

    def embed_query(self, text: str) -> np.ndarray:
        """float32 of shape (dimensions,), with the query prefix applied."""
        ...


@runtime_checkable
class BatchwiseEmbedder(Protocol):
    """What an embedder has besides whose calls take long enough for a stop to come in the middle of one."""

    def embed_in_batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], EmbeddingBatch]]:
        """As `embed_documents`, bit by bit: positions in `texts` with their vectors, until all are done."""
        ...


def model_identity(embedder: Embedder) -> str:
    """Hex hash of what makes the vector space: model file (else profile id), pooling, both prefixes, dimensions.

    The same bytes under another name are the same model.
    """
    profile = embedder.profile
    return hash_fields(
        (
            embedder.model_hash or profile.id,
            profile.pooling,
            profile.document_prefix,
            profile.query_prefix,
            profile.dimensions,
        )
    ).hex()
