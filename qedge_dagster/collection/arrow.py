"""The columns of a collection as Arrow sees them: in the export of a whole collection and in the stage artefacts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from qedge_dagster.collection.chunk import INTEGER_COLUMNS

__all__ = ["ArrowArray", "ArrowField", "ArrowSchema", "ArrowTable", "column_fields", "embedding_field", "vector_column"]

# pyarrow comes without types: the names alone say what is meant.
ArrowArray: TypeAlias = Any
ArrowField: TypeAlias = Any
ArrowSchema: TypeAlias = Any
ArrowTable: TypeAlias = Any


def column_fields(columns: Iterable[str]) -> list[ArrowField]:
    import pyarrow as pa

    kinds = {"content_hash": pa.binary(16), **dict.fromkeys(INTEGER_COLUMNS, pa.int64())}
    return [pa.field(column, kinds.get(column, pa.string())) for column in columns]


def embedding_field(dimensions: int) -> ArrowField:
    import pyarrow as pa

    return pa.field("embedding", pa.list_(pa.float32(), dimensions))


def vector_column(vectors: Sequence[bytes], dimensions: int) -> ArrowArray:
    """`vectors` as the database holds them: float32, `dimensions` of them each."""
    import numpy as np
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(np.frombuffer(b"".join(vectors), dtype=np.float32)), dimensions)
