"""The document ids that a run has met, in a temporary table: memory stays constant and the file is not written to."""

from __future__ import annotations

from collections.abc import Iterator

from qedge_dagster.collection.connection import Database

__all__ = ["SeenDocuments"]


class SeenDocuments:
    """A context: the table lives as long as the run."""

    def __init__(self, database: Database) -> None:
        self._connection = database.connection

    def __enter__(self) -> SeenDocuments:
        # Nobody needs to roll it back.
        self._connection.execute("PRAGMA temp.journal_mode = OFF; DROP TABLE IF EXISTS temp.seen_document")
        self._connection.execute("CREATE TABLE temp.seen_document (document_id TEXT PRIMARY KEY) WITHOUT ROWID")
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.execute("DROP TABLE temp.seen_document")

    def add(self, document_id: str) -> bool:
        """False if the id was met before."""
        self._connection.execute("INSERT OR IGNORE INTO temp.seen_document VALUES (?)", (document_id,))
        return self._connection.changes() == 1

    def __contains__(self, document_id: str) -> bool:
        query = "SELECT 1 FROM temp.seen_document WHERE document_id = ?"
        return self._connection.execute(query, (document_id,)).get is not None

    def unseen(self, collection: str, source_id: str) -> Iterator[str]:
        """Documents of the state that were not met, in order of id."""
        for row in self._connection.execute(
            "SELECT document_id FROM qedge_ingest_document WHERE collection = ? AND source_id = ?"
            " AND document_id NOT IN (SELECT document_id FROM temp.seen_document) ORDER BY document_id",
            (collection, source_id),
        ):
            yield row[0]
