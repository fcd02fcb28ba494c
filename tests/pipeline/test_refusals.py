"""A database that does not fit is refused before any write."""

from __future__ import annotations

import hashlib
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from qedge_dagster import FolderSource, IngestionOptions, QedgeError, RunOptions
from qedge_dagster.pipeline import IngestionPipeline
from tests.pipeline.support import CountingEmbedder, check_integrity, ingest, write


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", {"a.txt": "Some text.", "b.txt": "More text."})


def refused(db: Path, docs: Path, options: IngestionOptions | None = None, dimensions: int = 8) -> int:
    """The code of the refusal; the file is the same to the byte afterwards."""
    before = hashlib.sha256(db.read_bytes()).hexdigest()
    with pytest.raises(QedgeError) as error:
        ingest(db, FolderSource(docs), CountingEmbedder(dimensions=dimensions), options=options)
    assert hashlib.sha256(db.read_bytes()).hexdigest() == before
    return error.value.code


def execute(db: Path, statement: str) -> None:
    with closing(apsw.Connection(str(db))) as connection:
        connection.execute(statement)
        connection.pragma("wal_checkpoint", "truncate")


def test_an_applications_own_database(docs: Path, tmp_path: Path) -> None:
    """Its tables and data stay; ingestion takes versions 8 and 9; taken versions are 6007."""
    db = tmp_path / "app.db"
    execute(db, "CREATE TABLE mine (x); INSERT INTO mine VALUES (1), (2); PRAGMA user_version = 7")
    assert refused(db, docs) == 6007
    assert refused(db, docs, IngestionOptions(first_migration=7)) == 6007
    assert refused(db, docs, IngestionOptions(first_migration=9)) == 6007
    assert (
        ingest(db, FolderSource(docs), CountingEmbedder(), options=IngestionOptions(first_migration=8)).outcome
        == "completed"
    )
    with closing(apsw.Connection(str(db))) as connection:
        assert connection.pragma("user_version") == 9
        assert connection.execute("SELECT x FROM mine").fetchall() == [(1,), (2,)]
    execute(db, "PRAGMA user_version = 12")  # the application goes on with its own migrations
    assert ingest(db, FolderSource(docs), CountingEmbedder()).documents_skipped == 2
    check_integrity(db)


def test_all_that_an_application_keeps_stays(docs: Path, tmp_path: Path) -> None:
    """Tables with indexes, views, triggers, a full-text index and an identity of their own are the same, and go on
    working, after an ingest, an update, a rebuild and a removal."""
    db = tmp_path / "app.db"
    execute(
        db,
        "PRAGMA application_id = 4711; PRAGMA user_version = 7;"
        "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT UNIQUE, parent REFERENCES note); CREATE TABLE log (x);"
        "CREATE INDEX note_parent ON note (parent); CREATE VIEW roots AS SELECT * FROM note WHERE parent IS NULL;"
        "CREATE TRIGGER noted AFTER INSERT ON note BEGIN INSERT INTO log VALUES (NEW.id); END;"
        "CREATE VIRTUAL TABLE note_fts USING fts5(text); INSERT INTO note_fts VALUES ('a note');"
        "INSERT INTO note VALUES (1, 'a', NULL), (2, 'b', 1)",
    )

    def kept() -> list[object]:
        with closing(apsw.Connection(str(db))) as connection:
            return [
                connection.pragma("application_id"),
                *connection.execute(
                    "SELECT sql FROM sqlite_master WHERE name GLOB 'note*' OR name IN ('log', 'roots')"
                ),
                *connection.execute("SELECT * FROM roots"),
                *connection.execute("SELECT x FROM log"),
                *connection.execute("SELECT * FROM note_fts WHERE note_fts MATCH 'note'"),
            ]

    before = kept()
    options = IngestionOptions(first_migration=8)
    ingest(db, FolderSource(docs), CountingEmbedder(), options=options)
    write(docs, {"a.txt": "Another text."})
    (docs / "b.txt").unlink()
    result = ingest(db, FolderSource(docs), CountingEmbedder("new"), options=options, run=RunOptions(rebuild=True))
    assert (result.outcome, result.documents_indexed) == ("completed", 1)
    assert kept() == before
    with closing(apsw.Connection(str(db))) as connection:
        assert connection.pragma("user_version") == 9
        connection.execute("INSERT INTO note VALUES (3, 'c', 2)")
        assert connection.execute("SELECT count(*) FROM log").get == 3
    check_integrity(db)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE qedge_ingest_meta SET value = '2' WHERE key = 'schema_version'", 6203),
        ("UPDATE qedge_ingest_meta SET value = 'md5' WHERE key = 'hash_algorithm'", 6202),
        ("DELETE FROM qedge_ingest_meta WHERE key = 'hash_algorithm'", 6204),
        ("DROP TABLE qedge_ingest_meta; PRAGMA user_version = 0", 6201),
        ("UPDATE qedge_ingest_meta SET value = '{' WHERE key = 'chunks/model'", 6204),
        (
            "UPDATE qedge_ingest_document SET content_hash = substr(content_hash, 1, 7) WHERE document_id = 'b.txt'",
            6204,
        ),
        ("UPDATE qedge_ingest_document SET recipe_hash = hex(recipe_hash) WHERE document_id = 'b.txt'", 6204),
    ],
)
def test_state_that_is_not_ours_to_read(docs: Path, tmp_path: Path, statement: str, code: int) -> None:
    """A newer schema, another hash, damaged facts."""
    db = tmp_path / "index.db"
    ingest(db, FolderSource(docs), CountingEmbedder())
    execute(db, statement)
    assert refused(db, docs) == code


def test_another_form_of_collection(docs: Path, tmp_path: Path) -> None:
    """Other dimensions are 6006, another distance or full-text tokenizer 6011."""
    db = tmp_path / "index.db"
    ingest(db, FolderSource(docs), CountingEmbedder())
    execute(db, "PRAGMA user_version = 2")
    assert refused(db, docs, dimensions=9) == 6006
    assert refused(db, docs, IngestionOptions(distance="l2")) == 6011
    assert refused(db, docs, IngestionOptions(fts_tokenizer="trigram")) == 6011


def test_a_table_of_that_name_that_is_no_collection(docs: Path, tmp_path: Path) -> None:
    """6011, and the table stays as it is."""
    db = tmp_path / "app.db"
    execute(db, "CREATE TABLE chunks (x)")
    assert refused(db, docs) == 6011


def test_a_file_that_is_no_database(docs: Path, tmp_path: Path) -> None:
    """6204 for a file of something else; 6002 for a folder that does not exist."""
    db = tmp_path / "notes.db"
    db.write_text("Dear diary, " * 500)
    assert refused(db, docs) == 6204
    with pytest.raises(QedgeError) as error:
        IngestionPipeline.open(tmp_path / "no such folder" / "index.db")
    assert error.value.code == 6002


@pytest.mark.parametrize(
    "name", ["", "1st", "a b", 'x"; DROP TABLE y', "sqlite_x", "qedge_ingest_x", "order", "a" * 99]
)
def test_a_collection_name_that_sql_could_not_take(tmp_path: Path, name: str) -> None:
    """6005 before the name is anywhere near a statement."""
    with pytest.raises(QedgeError) as error:
        IngestionPipeline.open(tmp_path / "index.db", collection=name)
    assert error.value.code == 6005


def test_a_name_that_sqlite_would_take_for_something_else(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ ":memory:" is a file of that name, like any other."""
    monkeypatch.chdir(tmp_path)
    assert ingest(Path(":memory:"), FolderSource(docs), CountingEmbedder()).documents_indexed == 2
    assert ingest(Path(":memory:"), FolderSource(docs), CountingEmbedder()).documents_skipped == 2


def test_two_collections_share_a_file(docs: Path, tmp_path: Path) -> None:
    """Each with its own model, dimensions and state."""
    db = tmp_path / "index.db"
    ingest(db, FolderSource(docs), CountingEmbedder())
    other = CountingEmbedder("other", dimensions=5)
    with IngestionPipeline.open(db, collection="notes", embedder=other) as pipeline:
        assert pipeline.run(FolderSource(docs)).documents_indexed == 2
        assert len(pipeline.collection.search("text", top=5)) == 2
    assert ingest(db, FolderSource(docs), CountingEmbedder()).documents_skipped == 2


def test_a_database_that_another_program_holds_is_a_clean_abort(docs: Path, tmp_path: Path) -> None:
    """6205 when a write transaction outlasts the busy timeout; afterwards the run goes through."""
    db = tmp_path / "index.db"
    ingest(db, FolderSource(docs), CountingEmbedder())
    with (
        closing(apsw.Connection(str(db))) as other,
        IngestionPipeline.open(db, embedder=CountingEmbedder()) as pipeline,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(QedgeError) as error:
            pipeline.run(FolderSource(docs))
        assert error.value.code == 6205
        other.execute("ROLLBACK")
        assert pipeline.run(FolderSource(docs)).documents_skipped == 2
