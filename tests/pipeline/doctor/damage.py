"""What can happen to a database, and what the doctor finds then."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from qedge_dagster import (
    FolderSource,
)
from qedge_dagster.collection.connection import Database
from qedge_dagster.pipeline.doctor import examine
from qedge_dagster.pipeline.lock import lock_path
from tests.pipeline.support import prose

Damage = Callable[[Path], None]

TEXT = {f"{n}.md": f"# Title {n}\n\n" + "\n\n".join(prose(n, 8)) for n in range(4)}


def source(docs: Path) -> FolderSource:
    return FolderSource(docs, source_id="s")


def sql(*statements: str) -> Damage:
    def damage(db: Path) -> None:
        with closing(Database(db)) as database:
            for statement in statements:
                database.connection.execute(statement)

    return damage


def kinds(db: Path) -> list[str]:
    return [finding.kind for finding in examine(db).found]


def empty_index(db: Path, name: str = "chunks_document_id") -> None:
    """The index loses its entries: it is built for no row, and then said to be for all."""
    change = f"UPDATE sqlite_master SET sql = {{}} WHERE name = '{name}'"
    sql("PRAGMA writable_schema = ON", change.format("sql || ' WHERE 0'"))(db)
    sql(f"REINDEX {name}")(db)
    sql("PRAGMA writable_schema = ON", change.format("replace(sql, ' WHERE 0', '')"))(db)


def _stale_lock(db: Path) -> None:
    path = lock_path(db, "chunks", "gone")
    path.touch()
    os.utime(path, (0, 0))


def _state_of_nothing(db: Path) -> None:
    sql(
        "INSERT INTO qedge_ingest_document SELECT 'ghost', source_id, document_id, content_hash, recipe_hash, 1, NULL,"
        " 'text', 1, 'indexed', NULL, 'r', 'u' FROM qedge_ingest_document",
        "INSERT INTO qedge_ingest_meta VALUES ('ghost/model', '{}')",
    )(db)


ROW = "(SELECT max(_rowid) FROM chunks WHERE document_id = '1.md')"
OTHER_TEXT = f"SELECT {ROW}, 'another text', '' "
FTS_DELETE = (
    "INSERT INTO chunks_fts (chunks_fts, rowid, text, heading_path)"
    f" SELECT 'delete', _rowid, text, heading_path FROM chunks WHERE _rowid = {ROW}"
)

DAMAGE: dict[str, tuple[Damage, list[str]]] = {
    "vectors deleted": (sql(f"DELETE FROM chunks_vec WHERE rowid IN (1, {ROW})"), ["vectors_missing"]),
    "vector of no row": (
        sql("INSERT INTO chunks_vec (rowid, embedding) SELECT 999, embedding FROM chunks_vec WHERE rowid = 1"),
        ["vectors_orphaned"],
    ),
    "zero vector": (sql("UPDATE chunks_vec SET embedding = zeroblob(32) WHERE rowid = 3"), ["vectors_unusable"]),
    "NaN vector": (
        sql("UPDATE chunks_vec SET embedding = CAST(unhex('0000C07F') || zeroblob(28) AS BLOB) WHERE rowid = 3"),
        ["vectors_unusable"],
    ),
    "slot of another row": (
        sql("UPDATE chunks_vec_rowids SET chunk_offset = 77 WHERE rowid = 1"),
        ["vectors_misplaced"],
    ),
    "block of another dimension": (
        sql("UPDATE chunks_vec_vector_chunks00 SET vectors = substr(vectors, 1, 256 * 4 * 4)"),
        ["vectors_of_wrong_size"],
    ),
    "block lost": (sql("DELETE FROM chunks_vec_vector_chunks00"), ["vectors_of_wrong_size"]),
    "full-text entry deleted": (sql(FTS_DELETE), ["full_text_missing"]),
    "full-text entry of no row": (
        sql("INSERT INTO chunks_fts (rowid, text, heading_path) VALUES (999, 'some text', '')"),
        ["full_text_orphaned"],
    ),
    "full-text entry of another text": (
        sql(FTS_DELETE, f"INSERT INTO chunks_fts (rowid, text, heading_path) {OTHER_TEXT}"),
        ["full_text_stale"],
    ),
    "full-text segment overwritten": (
        sql("UPDATE chunks_fts_data SET block = zeroblob(length(block)) WHERE id > 10"),
        ["full_text_damaged"],
    ),
    "full-text structure lost": (sql("DELETE FROM chunks_fts_data WHERE id = 10"), ["full_text_damaged"]),
    "full-text format unknown": (sql("DELETE FROM chunks_fts_config"), ["full_text_damaged"]),
    "content hash cut off": (
        sql("UPDATE chunks SET content_hash = substr(content_hash, 1, 8) WHERE _rowid = 2"),
        ["chunks_damaged"],
    ),
    "text changed": (sql(f"UPDATE chunks SET text = 'another' WHERE _rowid = {ROW}"), ["chunks_damaged"]),
    "text changed behind the triggers": (
        sql(
            f"UPDATE chunks SET text = 'x' WHERE _rowid = {ROW}",
            FTS_DELETE,
            f"INSERT INTO chunks_fts (rowid, text, heading_path) {OTHER_TEXT}",
        ),
        ["chunks_damaged", "full_text_stale"],
    ),
    "text no UTF-8": (
        sql("UPDATE chunks SET text = CAST(x'ff41' AS TEXT) WHERE _rowid = 2"),
        ["chunks_damaged"],
    ),
    "key changed": (sql("UPDATE chunks SET key = 'k' WHERE _rowid = 2"), ["chunks_damaged"]),
    "last row lost": (sql(f"DELETE FROM chunks WHERE _rowid = {ROW}"), ["state_disagrees"]),
    "first row lost": (sql("DELETE FROM chunks WHERE _rowid = 1"), ["ordinals_wrong", "state_disagrees"]),
    "all rows lost": (sql("DELETE FROM chunks"), ["state_disagrees"]),
    "ordinals exchanged": (sql("UPDATE chunks SET ordinal = 1 WHERE ordinal = 0"), ["ordinals_wrong"]),
    "state lost": (
        sql(
            "DELETE FROM qedge_ingest_document WHERE document_id = '1.md'",
            "DELETE FROM qedge_ingest_version WHERE document_id = '1.md'",
        ),
        ["state_missing"],
    ),
    "hash of a document cut off": (
        sql("UPDATE qedge_ingest_document SET content_hash = x'00' WHERE document_id = '2.md'"),
        ["state_damaged"],
    ),
    "recipe hash no blob": (
        sql("UPDATE qedge_ingest_document SET recipe_hash = 'sixteen letters.' WHERE document_id = '2.md'"),
        ["state_damaged"],
    ),
    "versions of no document": (
        sql(
            "INSERT INTO qedge_ingest_version SELECT collection, source_id, 'gone', extracted, chunks, embeddings,"
            " collection_rows FROM qedge_ingest_version LIMIT 1"
        ),
        ["versions_wrong"],
    ),
    "staged vector of another dimension": (
        sql("INSERT INTO qedge_ingest_staged VALUES ('chunks', 's', zeroblob(16), x'01020304')"),
        ["staged_damaged"],
    ),
    "staged vectors of a source that is gone": (
        sql("INSERT INTO qedge_ingest_staged SELECT 'chunks', 'gone', zeroblob(16), embedding FROM chunks_vec LIMIT 1"),
        ["staged_leftover"],
    ),
    "note of a run damaged": (
        sql("INSERT INTO qedge_ingest_meta VALUES ('chunks/resume/s', '{\"chain\":')"),
        ["notes_damaged"],
    ),
    "trigger dropped": (sql("DROP TRIGGER chunks_after_delete"), ["triggers_missing"]),
    "unique index dropped": (sql("DROP INDEX chunks_key"), ["triggers_missing"]),
    "index emptied": (empty_index, ["index_damaged"]),
    "state without tables": (_state_of_nothing, ["state_without_tables"]),
    "lock file left over": (_stale_lock, ["locks_stale"]),
}
