"""The blocks in which vec0 keeps its vectors, read past vec0: what it cannot find, it does not show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import apsw
import numpy as np

from qedge_dagster.collection.schema import CollectionSpec

__all__ = ["VectorBlock", "vector_blocks"]


@dataclass(frozen=True, slots=True)
class VectorBlock:
    """Slots in use (int64), the row in each (int64), and its vector (float32, `len(slots)` x dimensions).

    `vectors` is None where the block is not of the size that the collection's dimension makes it.
    """

    number: int
    slots: np.ndarray
    rowids: np.ndarray
    vectors: np.ndarray | None

    def usable(self) -> np.ndarray:
        """By slot, whether the vector is neither zero nor anywhere infinite or NaN."""
        assert self.vectors is not None
        return np.asarray(np.isfinite(self.vectors).all(axis=1) & self.vectors.any(axis=1))


def vector_blocks(
    connection: apsw.Connection, spec: CollectionSpec, number: int | None = None
) -> Iterator[VectorBlock]:
    """All blocks, or the one with this number. One, of at most 256 vectors, is in memory at a time."""
    nothing = np.empty(0, dtype=np.int64)
    for block, size, validity, rowids, vectors in connection.execute(
        f"SELECT chunk_id, size, validity, c.rowids, v.vectors FROM {spec.name}_vec_chunks AS c"
        f" LEFT JOIN {spec.name}_vec_vector_chunks00 AS v ON v.rowid = c.chunk_id"
        " WHERE ?1 IS NULL OR chunk_id = ?1 ORDER BY chunk_id",
        (number,),
    ):
        wanted = (size // 8, size * 8, size * spec.dimensions * 4)
        if tuple(len(part) if isinstance(part, bytes) else -1 for part in (validity, rowids, vectors)) != wanted:
            yield VectorBlock(block, nothing, nothing, None)
            continue
        used = np.flatnonzero(np.unpackbits(np.frombuffer(validity, dtype=np.uint8), bitorder="little"))
        floats = np.frombuffer(vectors, dtype=np.float32).reshape(-1, spec.dimensions)
        yield VectorBlock(block, used, np.frombuffer(rowids, dtype=np.int64)[used], floats[used])
