"""What another library knows of the rows it wrote, besides what a chunk holds: its own ids and whole objects, as text.

One table for all collections of a file, made when the first such row is written. A row of it is found by the library's
id or by the chunk's key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from qedge_dagster.collection.connection import Database

__all__ = ["NodeStore", "StoredNode"]

_SQL = """
    CREATE TABLE IF NOT EXISTS qedge_ingest_node (
        collection TEXT NOT NULL,
        source_id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        document_id TEXT NOT NULL,
        key TEXT NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (collection, source_id, node_id)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS qedge_ingest_node_key ON qedge_ingest_node (collection, key);
    CREATE INDEX IF NOT EXISTS qedge_ingest_node_document ON qedge_ingest_node (collection, source_id, document_id);
"""


@dataclass(frozen=True, slots=True)
class StoredNode:
    """`content` is the library's own form of the object, `key` that of its chunk."""

    node_id: str
    document_id: str
    key: str
    content: str


class NodeStore:
    """The nodes of one collection. Methods that write expect the caller to hold the transaction."""

    def __init__(self, database: Database, collection: str) -> None:
        self._connection = database.connection
        self._collection = collection

    def create(self) -> None:
        """Make the table where there is none."""
        self._connection.execute(_SQL)

    def drop_lost(self) -> None:
        """Drop the nodes of chunks that were removed by other means."""
        self._connection.execute(
            f"DELETE FROM qedge_ingest_node WHERE collection = ? AND key NOT IN (SELECT key FROM {self._collection})",
            (self._collection,),
        )

    def by_key(self, keys: Iterable[str]) -> dict[str, StoredNode]:
        """Those of `keys` that are of nodes."""
        return {node.key: node for node in self._select("key IN (SELECT value FROM json_each(?))", _json(keys))}

    def by_id(self, source_id: str, node_ids: Iterable[str]) -> dict[str, StoredNode]:
        condition = "source_id = ? AND node_id IN (SELECT value FROM json_each(?))"
        return {node.node_id: node for node in self._select(condition, source_id, _json(node_ids))}

    def of_document(self, source_id: str, document_id: str) -> list[StoredNode]:
        return list(self._select("source_id = ? AND document_id = ?", source_id, document_id))

    def delete(self, source_id: str, node_ids: Iterable[str]) -> None:
        self._connection.executemany(
            "DELETE FROM qedge_ingest_node WHERE collection = ? AND source_id = ? AND node_id = ?",
            ((self._collection, source_id, node_id) for node_id in node_ids),
        )

    def put(self, source_id: str, document_id: str, nodes: Sequence[StoredNode]) -> None:
        """Replace the nodes of a document by `nodes`."""
        self._connection.execute(
            "DELETE FROM qedge_ingest_node WHERE collection = ? AND source_id = ? AND document_id = ?",
            (self._collection, source_id, document_id),
        )
        self._connection.executemany(
            "INSERT INTO qedge_ingest_node VALUES (?, ?, ?, ?, ?, ?)",
            ((self._collection, source_id, n.node_id, n.document_id, n.key, n.content) for n in nodes),
        )

    def _select(self, condition: str, *values: str) -> Iterator[StoredNode]:
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'qedge_ingest_node'"
        if self._connection.execute(query).get is None:
            return
        for row in self._connection.execute(
            f"SELECT node_id, document_id, key, content FROM qedge_ingest_node WHERE collection = ? AND {condition}",
            (self._collection, *values),
        ):
            yield StoredNode(*row)


def _json(values: Iterable[str]) -> str:
    return json.dumps(list(values))
