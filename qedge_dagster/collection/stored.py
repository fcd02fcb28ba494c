"""Rows in order, inside the reader's snapshot."""

from __future__ import annotations

from collections.abc import Iterator

from qedge_dagster.collection.chunk import COLUMNS, ORDER, StoredChunk
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.filters import Filter

__all__ = ["filtered_chunks", "stored_chunks", "stored_vectors"]


def stored_chunks(database: Database, name: str, source_id: str, document_id: str) -> Iterator[StoredChunk]:
    for row in database.connection.execute(
        f"SELECT {', '.join(COLUMNS)} FROM {name} WHERE source_id = ? AND document_id = ? ORDER BY {ORDER}",
        (source_id, document_id),
    ):
        yield StoredChunk.from_row(row)


def stored_vectors(
    database: Database, name: str, source_id: str, document_id: str
) -> Iterator[tuple[str, str, str, int, bytes, bytes]]:
    """Key, source id, document id, ordinal, content hash and float32 vector."""
    yield from database.connection.execute(
        "SELECT key, source_id, document_id, ordinal, content_hash,"
        f" (SELECT embedding FROM {name}_vec WHERE rowid = _rowid)"
        f" FROM {name} WHERE source_id = ? AND document_id = ? ORDER BY {ORDER}",
        (source_id, document_id),
    )


def filtered_chunks(database: Database, name: str, filter_: Filter) -> Iterator[StoredChunk]:
    condition, values = filter_.sql()
    for row in database.connection.execute(
        f"SELECT {', '.join(COLUMNS)} FROM {name} WHERE {condition} ORDER BY {ORDER}", values
    ):
        yield StoredChunk.from_row(row)
