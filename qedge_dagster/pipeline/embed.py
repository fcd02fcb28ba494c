"""Embedding one window of texts: the retry, and the refusal of vectors that would spoil the index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from qedge_dagster.collection.writer import ChunkRow
from qedge_dagster.embedding.base import BatchwiseEmbedder, Embedder, EmbeddingBatch
from qedge_dagster.errors import QedgeError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["WindowEmbedder", "by_length"]

_Batch: TypeAlias = "tuple[list[int], EmbeddingBatch]"


def by_length(rows: Sequence[ChunkRow]) -> list[ChunkRow]:
    """Rows of distinct content, so that a window of consecutive ones needs little padding."""
    distinct = {row.content_hash: row for row in rows}
    return sorted(distinct.values(), key=lambda row: (row.draft.token_count, row.content_hash))


class WindowEmbedder:
    """Calls the embedder and counts. `calls`, `texts` and `tokens` are totals since construction."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.calls = 0
        self.texts = 0
        self.tokens = 0

    def load(self) -> None:
        """Make the model ready. Raises `QedgeError` 6208 where it cannot be, for which no document is to blame."""
        try:
            self._embedder.load()
        except QedgeError:
            raise
        except Exception as error:  # whatever a model or a remote service raises
            raise QedgeError(
                6208, f"the model could not be loaded: {type(error).__name__}", remedy="see the embedder's own error"
            ) from error

    def embed(self, window: Sequence[ChunkRow], stopped: Callable[[], bool] = lambda: False) -> dict[bytes, bytes]:
        """float32 vectors by content hash: of the whole window, or of a part of it where `stopped` said so meanwhile
        and the embedder can be stopped within a call.

        A call that raises is tried once more in two halves. Raises `QedgeError` 6206 if that fails too or a vector is
        unusable, 6006 if the model gives another dimension than its profile says.
        """
        texts = [row.draft.embed_text for row in window]
        try:
            batches = list(self._call(texts, 0, stopped))
        except QedgeError as error:
            if error.code == 6006:
                raise
            batches = self._halves(texts, error, stopped)
        except Exception as error:  # whatever a model or a remote service raises
            batches = self._halves(texts, error, stopped)
        vectors = {
            window[position].content_hash: vector
            for positions, batch in batches
            for position, vector in zip(positions, _usable(batch), strict=True)
        }
        self.texts += len(vectors)
        self.tokens += sum(int(batch.tokens) for _, batch in batches)
        return vectors

    def _call(self, texts: list[str], offset: int, stopped: Callable[[], bool]) -> Iterator[_Batch]:
        """Positions, counted from `offset`, and what the embedder made of the texts there."""
        self.calls += 1
        if not isinstance(self._embedder, BatchwiseEmbedder):
            batch = self._embedder.embed_documents(texts)
            self._check(batch, len(texts))
            yield [offset + position for position in range(len(texts))], batch
            return
        for positions, batch in self._embedder.embed_in_batches(texts):
            self._check(batch, len(positions))
            yield [offset + position for position in positions], batch
            if stopped():
                return

    def _check(self, batch: EmbeddingBatch, texts: int) -> None:
        import numpy as np

        dimensions = self._embedder.profile.dimensions
        if batch.vectors.ndim != 2 or batch.vectors.shape[1] != dimensions:
            raise QedgeError(
                6006, f"the model gave an array of shape {batch.vectors.shape}, its profile says {dimensions}"
            )
        counted = isinstance(batch.tokens, (int, np.integer))  # pyright: ignore[reportUnnecessaryIsInstance]
        if not counted or batch.tokens < 0:  # an embedder of the caller's may report anything
            raise QedgeError(6206, "the model reported no number of tokens")
        if len(batch.vectors) != texts:
            raise QedgeError(6206, f"the model gave {len(batch.vectors)} vectors for {texts} texts")

    def _halves(self, texts: list[str], first: Exception, stopped: Callable[[], bool]) -> list[_Batch]:
        half = (len(texts) + 1) // 2
        try:
            return [
                batch
                for offset, part in ((0, texts[:half]), (half, texts[half:]))
                if part
                for batch in self._call(part, offset, stopped)
            ]
        except QedgeError:
            raise
        except Exception as error:
            # The type alone: a message may quote the text.
            raise QedgeError(
                6206, f"the embedder raised {type(first).__name__}, then {type(error).__name__} on half the batch"
            ) from error


def _usable(batch: EmbeddingBatch) -> Iterator[bytes]:
    """vec0 takes NaN and zero vectors, and then ranks other rows wrongly."""
    import numpy as np

    vectors: np.ndarray = np.ascontiguousarray(batch.vectors, dtype="<f4")
    norms = np.linalg.norm(vectors, axis=1)
    bad = np.flatnonzero(~np.isfinite(norms) | (norms == 0))
    if len(bad):
        raise QedgeError(6206, f"{len(bad)} of {len(vectors)} vectors are zero or not finite")
    for vector in vectors:
        yield vector.tobytes()
