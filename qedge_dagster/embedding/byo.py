"""Bring your own: any function from texts to vectors as an embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from qedge_dagster.embedding.base import EmbeddingBatch
from qedge_dagster.embedding.profiles import ModelProfile
from qedge_dagster.embedding.vectors import unit_length
from qedge_dagster.errors import QedgeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from qedge_dagster.chunking.tokenizer import Tokenizer

__all__ = ["CallableEmbedder"]


class CallableEmbedder:
    """A function `list[str] → vectors` (lists or an array, one row per text) with a profile and a tokenizer.

    The prefixes of the profile are applied here, before the function is called, and its vectors are brought to unit
    length. `fingerprint` stands for the model file: give it a value that changes whenever the function's vectors do, so
    that a collection is never filled from two models (6012). Without one the profile's id is taken for it.
    """

    def __init__(
        self,
        function: Callable[[list[str]], ArrayLike],
        profile: ModelProfile,
        tokenizer: Tokenizer | None,
        *,
        fingerprint: str | None = None,
    ) -> None:
        """Raises `QedgeError` 6001 without a tokenizer: nothing else can say how much text the model takes."""
        if tokenizer is None:
            raise QedgeError(6001, f"the embedder of profile {profile.id!r} has no tokenizer")
        if fingerprint is not None and not fingerprint.isprintable():
            raise QedgeError(6005, f"fingerprint {fingerprint!r} holds control characters")
        self._function = function
        self._profile = profile
        self._tokenizer = tokenizer
        self._fingerprint = fingerprint

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    @property
    def model_hash(self) -> str | None:
        return self._fingerprint

    @property
    def batch_invariance(self) -> float | None:
        """Unknown: a check would call the function for texts that nobody asked for."""
        return None

    def load(self) -> None:
        """Nothing: the function is ready when it is given."""

    def embed_documents(self, texts: Sequence[str]) -> EmbeddingBatch:
        """Raises `QedgeError` 6206 unless the function gives one vector per text, 6006 where they have another
        dimension than the profile says; what the function raises passes through."""
        prefixed = [self._profile.document_prefix + text for text in texts]
        overhead = self._tokenizer.special_token_overhead
        tokens = sum(self._tokenizer.count_batch(prefixed)) + overhead * len(prefixed)
        return EmbeddingBatch(self._vectors(prefixed), tokens)

    def embed_query(self, text: str) -> np.ndarray:
        """Raises as `embed_documents` does. The function gets the query whole: how to shorten it is its affair."""
        return self._vectors([self._profile.query_prefix + text])[0]

    def _vectors(self, texts: list[str]) -> np.ndarray:
        if not texts:
            return np.zeros((0, self._profile.dimensions), dtype=np.float32)
        returned = self._function(texts)
        try:
            vectors = np.asarray(returned, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise QedgeError(
                6206, f"the embedding function returned no array of numbers: {type(error).__name__}"
            ) from error
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise QedgeError(6206, f"the embedding function returned shape {vectors.shape} for {len(texts)} texts")
        if vectors.shape[1] != self._profile.dimensions:
            raise QedgeError(
                6006,
                f"the embedding function returned {vectors.shape[1]} dimensions,"
                f" profile {self._profile.id!r} says {self._profile.dimensions}",
                remedy="correct the profile's dimensions, or use the function that belongs to it",
            )
        return unit_length(vectors)
