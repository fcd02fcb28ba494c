"""Embedding one window of texts: the retry, and the refusal of vectors that would spoil the index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from qedge_dagster.collection.writer import ChunkRow
from qedge_dagster.embedding.base import Embedder, EmbeddingBatch
from qedge_dagster.errors import QedgeError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["WindowEmbedder", "windows"]


def windows(rows: Sequence[ChunkRow], size: int) -> Iterator[list[ChunkRow]]:
    """Rows of distinct content in windows of `size`, sorted by length so that a window needs little padding."""
    distinct = {row.content_hash: row for row in rows}
    ordered = sorted(distinct.values(), key=lambda row: (row.draft.token_count, row.content_hash))
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


class WindowEmbedder:
    """Calls the embedder and counts. `calls`, `texts` and `tokens` are totals since construction."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.calls = 0
        self.texts = 0
        self.tokens = 0

    def embed(self, window: Sequence[ChunkRow]) -> dict[bytes, bytes]:
        """float32 vectors by content hash.

        A call that raises is tried once more in two halves. Raises `QedgeError` 6206 if that fails too or a vector is
        unusable, 6006 if the model gives another dimension than its profile says.
        """
        texts = [row.draft.embed_text for row in window]
        try:
            batches = [self._call(texts)]
        except QedgeError as error:
            if error.code == 6006:
                raise
            batches = self._halves(texts, error)
        except Exception as error:  # whatever a model or a remote service raises
            batches = self._halves(texts, error)
        vectors = [vector for batch in batches for vector in self._usable(batch)]
        self.texts += len(texts)
        self.tokens += sum(int(batch.tokens) for batch in batches)
        return {row.content_hash: vector for row, vector in zip(window, vectors, strict=True)}

    def _call(self, texts: list[str]) -> EmbeddingBatch:
        import numpy as np

        self.calls += 1
        batch = self._embedder.embed_documents(texts)
        dimensions = self._embedder.profile.dimensions
        if batch.vectors.ndim != 2 or batch.vectors.shape[1] != dimensions:
            raise QedgeError(
                6006, f"the model gave an array of shape {batch.vectors.shape}, its profile says {dimensions}"
            )
        counted = isinstance(batch.tokens, (int, np.integer))  # pyright: ignore[reportUnnecessaryIsInstance]
        if not counted or batch.tokens < 0:  # an embedder of the caller's may report anything
            raise QedgeError(6206, "the model reported no number of tokens")
        if len(batch.vectors) != len(texts):
            raise QedgeError(6206, f"the model gave {len(batch.vectors)} vectors for {len(texts)} texts")
        return batch

    def _halves(self, texts: list[str], first: Exception) -> list[EmbeddingBatch]:
        half = (len(texts) + 1) // 2
        try:
            return [self._call(part) for part in (texts[:half], texts[half:]) if part]
        except QedgeError:
            raise
        except Exception as error:
            # The type alone: a message may quote the text.
            raise QedgeError(
                6206, f"the embedder raised {type(first).__name__}, then {type(error).__name__} on half the batch"
            ) from error

    def _usable(self, batch: EmbeddingBatch) -> Iterator[bytes]:
        """vec0 takes NaN and zero vectors, and then ranks other rows wrongly."""
        import numpy as np

        vectors: np.ndarray = np.ascontiguousarray(batch.vectors, dtype="<f4")
        norms = np.linalg.norm(vectors, axis=1)
        bad = np.flatnonzero(~np.isfinite(norms) | (norms == 0))
        if len(bad):
            raise QedgeError(6206, f"{len(bad)} of {len(vectors)} vectors are zero or not finite")
        for vector in vectors:
            yield vector.tobytes()
