"""Writing a collection: staged vectors, and the switch of a document in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from qedge_dagster.chunking.base import ChunkDraft
from qedge_dagster.collection.chunk import VECTORS_OF_OTHERS
from qedge_dagster.collection.connection import Database

__all__ = ["ChunkRow", "CollectionWriter", "StoredRow", "VectorsMissing"]

_MUTABLE = ("ordinal", "char_start", "char_end", "token_count", "page", "block_kind", "extractor_id", "media_type")


class VectorsMissing(Exception):
    """Between planning and the switch another writer removed rows whose vectors were to be reused."""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk with its identity, ready to be stored."""

    key: str
    content_hash: bytes
    draft: ChunkDraft
    extractor_id: str
    media_type: str

    def mutable_columns(self) -> tuple[object, ...]:
        """What may differ between two versions of a chunk that keeps its key, in the order of `_MUTABLE`; then the
        breadcrumb, which for the same embedded text also settles the text."""
        d = self.draft
        return (
            *(d.ordinal, d.char_start, d.char_end, d.token_count, d.page, d.kind, self.extractor_id, self.media_type),
            d.breadcrumb,
        )


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A stored chunk as the diff needs it; `columns` compares with `ChunkRow.mutable_columns()`."""

    rowid: int
    key: str
    columns: tuple[object, ...]

    @property
    def char_end(self) -> int:
        return cast("int", self.columns[_MUTABLE.index("char_end")])


class CollectionWriter:
    """Writes the rows of one collection. Methods that write expect the caller to hold the transaction."""

    def __init__(self, database: Database, name: str) -> None:
        self._connection = database.connection
        self.name = name  # validated by CollectionSpec, so it may be part of SQL

    def stored(self, source_id: str, document_id: str) -> Iterator[StoredRow]:
        for rowid, key, *columns in self._connection.execute(
            f"SELECT _rowid, key, {', '.join(_MUTABLE)}, heading_path FROM {self.name}"
            " WHERE source_id = ? AND document_id = ?",
            (source_id, document_id),
        ):
            yield StoredRow(rowid, key, tuple(columns))

    def damaged_documents(self, source_id: str) -> list[str]:
        """Documents of which the collection does not hold as many rows as the state says."""
        return [
            row[0]
            for row in self._connection.execute(
                "SELECT document_id FROM qedge_ingest_document AS d WHERE collection = ? AND source_id = ?"
                f" AND chunk_count <> (SELECT count(*) FROM {self.name} AS c"
                " WHERE c.source_id = d.source_id AND c.document_id = d.document_id)",
                (self.name, source_id),
            )
        ]

    def row_count(self) -> int:
        return self._connection.execute(f"SELECT count(*) FROM {self.name}").get

    # vectors

    def has_vector(self, source_id: str, content_hash: bytes) -> bool:
        """Whether some row of the collection, or a staged window of this source, has the vector of this content."""
        return (
            self._connection.execute(
                "SELECT 1 FROM qedge_ingest_staged WHERE collection = ? AND source_id = ? AND content_hash = ?",
                (self.name, source_id, content_hash),
            ).get
            is not None
            or self._row_with_vector(content_hash) is not None
        )

    def vectors(
        self, source_id: str, document_id: str, rows: Sequence[ChunkRow], fresh: Mapping[bytes, bytes]
    ) -> list[bytes]:
        """The vector that each of a document's `rows` has, or will have once those that are missing are added.

        Raises `VectorsMissing` as `add` does.
        """
        stored: dict[str, bytes] = dict(
            self._connection.execute(
                f"SELECT c.key, v.embedding FROM {self.name} AS c JOIN {self.name}_vec AS v ON v.rowid = c._rowid"
                " WHERE c.source_id = ? AND c.document_id = ?",
                (source_id, document_id),
            )
        )
        return [
            stored.get(row.key) or fresh.get(row.content_hash) or self.find_vector(source_id, row.content_hash, 0)
            for row in rows
        ]

    def _row_with_vector(self, content_hash: bytes, besides: int = 0) -> int | None:
        return self._connection.execute(
            f"SELECT _rowid FROM {self.name} AS c WHERE content_hash = ? AND _rowid <> ? AND extractor_id IS NOT ?"
            f" AND EXISTS (SELECT 1 FROM {self.name}_vec WHERE rowid = c._rowid) LIMIT 1",
            (content_hash, besides, VECTORS_OF_OTHERS),
        ).get

    def stage_vectors(self, source_id: str, vectors: Mapping[bytes, bytes]) -> None:
        """Keep the vectors (float32, by content hash) of a finished window until their document is switched."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO qedge_ingest_staged VALUES (?, ?, ?, ?)",
            ((self.name, source_id, digest, vector) for digest, vector in vectors.items()),
        )

    def clear_staged(self, source_id: str) -> None:
        self._connection.execute(
            "DELETE FROM qedge_ingest_staged WHERE collection = ? AND source_id = ?", (self.name, source_id)
        )

    # rows

    def add(
        self,
        source_id: str,
        document_id: str,
        rows: Sequence[ChunkRow],
        vectors: Mapping[bytes, bytes],
        created_utc: str,
    ) -> None:
        """Insert rows with their vectors: from `vectors`, from staged windows, or from a row of equal content.

        Raises `VectorsMissing` where none of the three has one; the caller's transaction must then be rolled back.
        """
        connection = self._connection
        for row in rows:
            d = row.draft
            connection.execute(
                f"INSERT INTO {self.name} (key, source_id, document_id, ordinal, text, heading_path, content_hash,"
                " char_start, char_end, token_count, page, block_kind, extractor_id, media_type, created_utc)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(row.key, source_id, document_id, d.ordinal, d.text, d.breadcrumb, row.content_hash),
                    *(d.char_start, d.char_end, d.token_count, d.page, d.kind, row.extractor_id, row.media_type),
                    created_utc,
                ),
            )
            rowid = connection.last_insert_rowid()
            vector = vectors.get(row.content_hash) or self.find_vector(source_id, row.content_hash, rowid)
            connection.execute(f"INSERT INTO {self.name}_vec (rowid, embedding) VALUES (?, ?)", (rowid, vector))
        connection.executemany(
            "DELETE FROM qedge_ingest_staged WHERE collection = ? AND source_id = ? AND content_hash = ?",
            {(self.name, source_id, row.content_hash) for row in rows},
        )

    def find_vector(self, source_id: str, content_hash: bytes, rowid: int) -> bytes:
        """The vector of a content, from a staged window or from a row other than `rowid`. Raises `VectorsMissing`."""
        vector = self._connection.execute(
            "SELECT embedding FROM qedge_ingest_staged WHERE collection = ? AND source_id = ? AND content_hash = ?",
            (self.name, source_id, content_hash),
        ).get
        if vector is None and (twin := self._row_with_vector(content_hash, besides=rowid)) is not None:
            vector = self._connection.execute(f"SELECT embedding FROM {self.name}_vec WHERE rowid = ?", (twin,)).get
        if vector is None:
            raise VectorsMissing
        return vector

    def repair(self, repaired: Iterable[tuple[int, ChunkRow]]) -> None:
        """Set position and provenance of rows whose content stays. Breadcrumb and text are written only where they
        differ, since that makes the full-text index work."""
        for rowid, row in repaired:
            *columns, breadcrumb = row.mutable_columns()
            self._connection.execute(
                f"UPDATE {self.name} SET {', '.join(f'{column} = ?' for column in _MUTABLE)} WHERE _rowid = ?",
                (*columns, rowid),
            )
            self._connection.execute(
                f"UPDATE {self.name} SET text = ?, heading_path = ? WHERE _rowid = ? AND heading_path IS NOT ?",
                (row.draft.text, breadcrumb, rowid, breadcrumb),
            )

    def delete(self, rowids: Iterable[int]) -> None:
        """Triggers take the rows out of the vector and full-text tables."""
        self._connection.executemany(f"DELETE FROM {self.name} WHERE _rowid = ?", ((rowid,) for rowid in rowids))

    def stage_rows(self, source_id: str, rowids: Iterable[int]) -> None:
        """Keep the vectors of rows that go: their text may turn up in another document of the same run, as when log
        files are rotated."""
        self._connection.executemany(
            "INSERT OR IGNORE INTO qedge_ingest_staged SELECT ?, ?, c.content_hash, v.embedding"
            f" FROM {self.name} AS c JOIN {self.name}_vec AS v ON v.rowid = c._rowid WHERE c._rowid = ?",
            ((self.name, source_id, rowid) for rowid in rowids),
        )

    def delete_document(self, source_id: str, document_id: str) -> int:
        """Returns the number of rows deleted."""
        rowids = [
            row[0]
            for row in self._connection.execute(
                f"SELECT _rowid FROM {self.name} WHERE source_id = ? AND document_id = ?", (source_id, document_id)
            )
        ]
        self.delete(rowids)
        return len(rowids)

    def merge_full_text(self, pages: int) -> bool:
        """Merge segments of the full-text index, writing about so many pages, in a transaction of its own; returns
        whether there is more to merge."""
        before = self._connection.total_changes()
        self._connection.execute(f"INSERT INTO {self.name}_fts({self.name}_fts, rank) VALUES('merge', ?)", (pages,))
        return self._connection.total_changes() - before >= 2  # so SQLite's documentation tells it
