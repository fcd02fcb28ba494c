"""The ingestion state: what became of each document, the runs, and a few facts of the collection.

Functions that write expect the caller to hold the transaction, unless they say otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from qedge_dagster.collection.connection import Database
from qedge_dagster.errors import QedgeError

__all__ = ["DocumentRow", "DocumentStatus", "ModelRecord", "RunRow", "StageVersions", "StateStore"]

DocumentStatus = Literal["indexed", "failed", "unsupported", "no_text_layer"]

_RUNS_KEPT = 20
_TABLES = ("qedge_ingest_document", "qedge_ingest_version", "qedge_ingest_staged")
_DOCUMENT_COLUMNS = (
    "document_id, content_hash, recipe_hash, size_bytes, modified_utc, extractor_id, chunk_count, status, error,"
    " last_run_id, updated_utc"
)
_RUN_COLUMNS = (
    "run_id, collection, source_id, recipe_hash, started_utc, finished_utc, outcome, suspend_reason,"
    " documents_indexed, chunks_added, chunks_removed, error"
)

# Of a row of the document table.
_HAS_VERSIONS = (
    "EXISTS (SELECT 1 FROM qedge_ingest_version AS v WHERE v.collection = {0}.collection"
    " AND v.source_id = {0}.source_id AND v.document_id = {0}.document_id)"
)


class DocumentRow(NamedTuple):
    """The state of one document. `content_hash` is None where the document must be tried again by the next run."""

    document_id: str
    content_hash: bytes | None
    recipe_hash: bytes | None
    size_bytes: int | None
    modified_utc: str | None
    extractor_id: str | None
    chunk_count: int
    status: DocumentStatus
    error: str | None
    last_run_id: str
    updated_utc: str


class RunRow(NamedTuple):
    run_id: str
    collection: str
    source_id: str
    recipe_hash: bytes | None
    started_utc: str
    finished_utc: str | None = None
    outcome: str | None = None
    suspend_reason: str | None = None
    documents_indexed: int = 0
    chunks_added: int = 0
    chunks_removed: int = 0
    error: str | None = None


class StageVersions(NamedTuple):
    """The data version of each stage's output for one document, 16 bytes each."""

    extracted: bytes
    chunks: bytes
    embeddings: bytes
    collection_rows: bytes


class ModelRecord(NamedTuple):
    """The model a collection was built with: `identity` is what counts, the profile's id is for people."""

    identity: str
    profile_id: str


class StateStore:
    """State rows of one collection. `collection` is the name under which rows are kept."""

    def __init__(self, database: Database, collection: str) -> None:
        self._connection = database.connection
        self.collection = collection

    # documents

    def document(self, source_id: str, document_id: str) -> DocumentRow | None:
        row = self._connection.execute(
            f"SELECT {_DOCUMENT_COLUMNS} FROM qedge_ingest_document"
            " WHERE collection = ? AND source_id = ? AND document_id = ?",
            (self.collection, source_id, document_id),
        ).fetchone()
        return _document_row(row) if row else None

    def documents(self, source_id: str | None = None) -> Iterator[tuple[str, DocumentRow]]:
        """(source_id, row) in order of source and document."""
        for source, *row in self._connection.execute(
            f"SELECT source_id, {_DOCUMENT_COLUMNS} FROM qedge_ingest_document"
            " WHERE collection = ? AND (?2 IS NULL OR source_id = ?2) ORDER BY source_id, document_id",
            (self.collection, source_id),
        ):
            yield source, _document_row(row)

    def signatures(self, source_id: str) -> dict[str, tuple[str, bytes | None, int | None, str | None]]:
        """By document id: the id, and the recipe, size and time that are recorded of it. Raises as `check_hashes`."""
        self.check_hashes(source_id)
        rows: Iterator[Any] = self._connection.execute(
            "SELECT document_id, recipe_hash, size_bytes, modified_utc FROM qedge_ingest_document"
            " WHERE collection = ? AND source_id = ? ORDER BY document_id",
            (self.collection, source_id),
        )
        return {row[0]: row for row in rows}

    def check_hashes(self, source_id: str) -> None:
        """Raises `QedgeError` 6204 where a recorded hash is none: met at its document's turn, it would leave a run half
        done."""
        from qedge_dagster.collection.state_integrity import STATE_CHECKS  # not for those who only read

        for _, document_id in self._connection.execute(
            f"{STATE_CHECKS['state_damaged']} AND source_id = ?2 LIMIT 1", (self.collection, source_id)
        ):
            self.document(source_id, document_id)

    def put_document(self, source_id: str, row: DocumentRow) -> None:
        self._connection.execute(
            f"INSERT OR REPLACE INTO qedge_ingest_document (collection, source_id, {_DOCUMENT_COLUMNS})"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self.collection,
                source_id,
                row.document_id,
                row.content_hash,
                row.recipe_hash,
                row.size_bytes,
                row.modified_utc,
                row.extractor_id,
                row.chunk_count,
                row.status,
                row.error,
                row.last_run_id,
                row.updated_utc,
            ),
        )

    def delete_document(self, source_id: str, document_id: str) -> None:
        self._connection.execute(
            "DELETE FROM qedge_ingest_document WHERE collection = ? AND source_id = ? AND document_id = ?",
            (self.collection, source_id, document_id),
        )
        self.delete_versions(source_id, document_id)

    def failed(self, source_id: str, limit: int) -> tuple[int, dict[str, str]]:
        """How many documents of a source have failed, and what was recorded of the first ones."""
        condition = "FROM qedge_ingest_document WHERE collection = ? AND source_id = ? AND status = 'failed'"
        values = (self.collection, source_id)
        count: Any = self._connection.execute(f"SELECT count(*) {condition}", values).get
        rows: Iterator[Any] = self._connection.execute(
            f"SELECT document_id, error {condition} ORDER BY document_id LIMIT ?", (*values, limit)
        )
        return count, dict(rows)

    def census(self) -> Iterator[tuple[str | None, bytes | None, DocumentStatus, bool, int]]:
        """Number of documents by extractor, recipe, status, and whether they have chunks."""
        yield from self._connection.execute(
            "SELECT extractor_id, recipe_hash, status, chunk_count > 0, count(*) FROM qedge_ingest_document"
            " WHERE collection = ? GROUP BY 1, 2, 3, 4",
            (self.collection,),
        )

    def source_ids(self) -> list[str]:
        """Every source that has documents in the collection."""
        return [
            row[0]
            for row in self._connection.execute(
                "SELECT DISTINCT source_id FROM qedge_ingest_document WHERE collection = ? ORDER BY 1",
                (self.collection,),
            )
        ]

    # stage versions

    def versions(self, source_id: str, document_id: str) -> StageVersions | None:
        """None for a document that was never indexed, or of which only a part is."""
        row = self._connection.execute(
            "SELECT extracted, chunks, embeddings, collection_rows FROM qedge_ingest_version"
            " WHERE collection = ? AND source_id = ? AND document_id = ?",
            (self.collection, source_id, document_id),
        ).fetchone()
        return StageVersions(*row) if row else None

    def all_versions(self, source_id: str) -> Iterator[tuple[str, StageVersions]]:
        """By document id."""
        for document_id, *versions in self._connection.execute(
            "SELECT document_id, extracted, chunks, embeddings, collection_rows FROM qedge_ingest_version"
            " WHERE collection = ? AND source_id = ? ORDER BY document_id",
            (self.collection, source_id),
        ):
            yield document_id, StageVersions(*versions)

    def put_versions(self, source_id: str, document_id: str, versions: StageVersions) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO qedge_ingest_version VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                self.collection,
                source_id,
                document_id,
                versions.extracted,
                versions.chunks,
                versions.embeddings,
                versions.collection_rows,
            ),
        )

    def delete_versions(self, source_id: str, document_id: str) -> None:
        self._connection.execute(
            "DELETE FROM qedge_ingest_version WHERE collection = ? AND source_id = ? AND document_id = ?",
            (self.collection, source_id, document_id),
        )

    # runs

    def start_run(self, row: RunRow) -> None:
        """Record a run as active. The caller holds the run lock, so an older run of the same source that is still
        recorded as active has died: it is closed as failed. Only the newest runs of the collection are kept."""
        self._connection.execute(
            "UPDATE qedge_ingest_run SET outcome = 'failed', finished_utc = ?, error = 'the process died'"
            " WHERE collection = ? AND source_id = ? AND finished_utc IS NULL",
            (row.started_utc, self.collection, row.source_id),
        )
        self._connection.execute(
            "INSERT INTO qedge_ingest_run (run_id, collection, source_id, recipe_hash, started_utc)"
            " VALUES (?, ?, ?, ?, ?)",
            (row.run_id, self.collection, row.source_id, row.recipe_hash, row.started_utc),
        )
        self._connection.execute(
            "DELETE FROM qedge_ingest_run WHERE collection = ?1 AND run_id NOT IN"
            " (SELECT run_id FROM qedge_ingest_run WHERE collection = ?1"
            " ORDER BY started_utc DESC, run_id DESC LIMIT ?2)",
            (self.collection, _RUNS_KEPT),
        )

    def count_in_run(self, run_id: str, *, indexed: int = 0, added: int = 0, removed: int = 0) -> None:
        """Add to the counts of a run, in the transaction that they tell of: a run that is killed has them too."""
        self._connection.execute(
            "UPDATE qedge_ingest_run SET documents_indexed = documents_indexed + ?, chunks_added = chunks_added + ?,"
            " chunks_removed = chunks_removed + ? WHERE run_id = ?",
            (indexed, added, removed, run_id),
        )

    def finish_run(self, row: RunRow) -> None:
        self._connection.execute(
            "UPDATE qedge_ingest_run SET finished_utc = ?, outcome = ?, suspend_reason = ?, documents_indexed = ?,"
            " chunks_added = ?, chunks_removed = ?, error = ? WHERE run_id = ?",
            (
                row.finished_utc,
                row.outcome,
                row.suspend_reason,
                row.documents_indexed,
                row.chunks_added,
                row.chunks_removed,
                row.error,
                row.run_id,
            ),
        )

    def active_run(self, source_id: str) -> RunRow | None:
        """The newest run that is recorded as not finished; whether it still lives, only the lock tells."""
        return self._run("finished_utc IS NULL AND source_id = ?", (source_id,))

    def unfinished_runs(self) -> list[RunRow]:
        """Runs that are active or have died."""
        return [
            RunRow(*row)
            for row in self._connection.execute(
                f"SELECT {_RUN_COLUMNS} FROM qedge_ingest_run WHERE collection = ? AND finished_utc IS NULL",
                (self.collection,),
            )
        ]

    def last_run(self, source_id: str | None = None) -> RunRow | None:
        """The newest finished run, of one source or of any."""
        return self._run("finished_utc IS NOT NULL AND (?2 IS NULL OR source_id = ?2)", (source_id,))

    def _run(self, condition: str, arguments: tuple[str | None, ...]) -> RunRow | None:
        row = self._connection.execute(
            f"SELECT {_RUN_COLUMNS} FROM qedge_ingest_run WHERE collection = ? AND {condition}"
            " ORDER BY started_utc DESC, run_id DESC LIMIT 1",
            (self.collection, *arguments),
        ).fetchone()
        return RunRow(*row) if row else None

    # facts of the collection

    def model(self) -> ModelRecord | None:
        value = self._meta("model")
        return None if value is None else ModelRecord(**value)

    def put_model(self, record: ModelRecord) -> None:
        self._put_meta("model", {"identity": record.identity, "profile_id": record.profile_id})

    def resume_position(self, source_id: str, chain: str) -> str | None:
        """The document at which the last run of this source was suspended, if that run was of the same `chain`: the
        recipe and what else decides which documents need work."""
        position = self._meta(f"resume/{source_id}")
        return position["document_id"] if position and position["chain"] == chain else None

    def put_resume_position(self, source_id: str, chain: str, document_id: str | None) -> None:
        self._put_meta(f"resume/{source_id}", document_id and {"chain": chain, "document_id": document_id})

    # rebuild

    def put_rebuilt(self, source_id: str) -> None:
        self._put_meta(f"rebuilt/{source_id}", True)

    def is_rebuilt(self, source_id: str) -> bool:
        return self._meta(f"rebuilt/{source_id}") is True

    def lost_documents(self, old: StateStore, source_id: str, *, gone: bool) -> list[str]:
        """Documents with chunks in `old` that failed and have none here, or fewer as they are there in part, or (with
        `gone`) were not seen."""
        return [
            row[0]
            for row in self._connection.execute(
                "SELECT o.document_id FROM qedge_ingest_document AS o LEFT JOIN qedge_ingest_document AS n"
                " ON n.collection = ? AND n.source_id = o.source_id AND n.document_id = o.document_id"
                " WHERE o.collection = ? AND o.source_id = ? AND o.chunk_count > 0"
                " AND CASE WHEN n.document_id IS NULL THEN ? ELSE n.status <> 'indexed' AND (n.chunk_count = 0 OR"
                f" {_HAS_VERSIONS.format('o')} AND NOT {_HAS_VERSIONS.format('n')}) END ORDER BY o.document_id",
                (self.collection, old.collection, source_id, gone),
            )
        ]

    def forget(self) -> None:
        """Delete all that is kept of the collection, besides its runs."""
        for table in _TABLES:
            self._connection.execute(f"DELETE FROM {table} WHERE collection = ?", (self.collection,))
        self._connection.execute(
            "DELETE FROM qedge_ingest_meta WHERE substr(key, 1, length(?1)) = ?1", (f"{self.collection}/",)
        )

    def take_over(self, other: StateStore) -> None:
        """Replace all that is kept of this collection by what is kept of `other`, which is forgotten."""
        self.forget()
        for table in _TABLES:
            self._connection.execute(
                f"UPDATE {table} SET collection = ? WHERE collection = ?", (self.collection, other.collection)
            )
        other.forget()

    def unseen(self, source_id: str) -> int:
        """How many documents the newest completed run did not see, and did not remove either."""
        return self._meta(f"unseen/{source_id}") or 0

    def put_unseen(self, source_id: str, count: int) -> None:
        self._put_meta(f"unseen/{source_id}", count or None)

    def stop(self) -> dict[str, float]:
        """What the newest stop took, step by step, in seconds; empty if there was none."""
        return self._meta("stop") or {}

    def put_stop(self, seconds: dict[str, float]) -> None:
        self._put_meta("stop", seconds)

    def throttle_reason(self) -> str | None:
        """Why a run was last made to go slower, or to pause."""
        return self._meta("throttle")

    def put_throttle_reason(self, reason: str) -> None:
        self._put_meta("throttle", reason)

    def _meta(self, name: str) -> Any:
        value = self._connection.execute(
            "SELECT value FROM qedge_ingest_meta WHERE key = ?", (f"{self.collection}/{name}",)
        ).get
        try:
            return None if value is None else json.loads(value)
        except ValueError as error:
            raise QedgeError(6204, f"the value of {self.collection}/{name} in qedge_ingest_meta is damaged") from error

    def _put_meta(self, name: str, value: object) -> None:
        key = f"{self.collection}/{name}"
        if value is None:
            self._connection.execute("DELETE FROM qedge_ingest_meta WHERE key = ?", (key,))
        else:
            self._connection.execute("INSERT OR REPLACE INTO qedge_ingest_meta VALUES (?, ?)", (key, json.dumps(value)))


def _document_row(values: Sequence[Any]) -> DocumentRow:
    row = DocumentRow(*values)
    for name in ("content_hash", "recipe_hash"):
        digest = getattr(row, name)
        if digest is not None and (not isinstance(digest, bytes) or len(digest) != 16):
            raise QedgeError(
                6204,
                f"the {name} of document {row.document_id!r} is damaged",
                remedy="run `qedge doctor --repair`, which has the next run read such documents again",
            )
    return row
