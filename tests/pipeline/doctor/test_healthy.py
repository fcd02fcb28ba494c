"""In a database that is as it should be nothing is found, whatever it has been through and whoever shares it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from qedge_dagster import (
    IngestionBudget,
    IngestionOptions,
    IngestionPipeline,
    QedgeError,
    RunOptions,
)
from qedge_dagster.collection.connection import Database
from qedge_dagster.pipeline.doctor import examine, mend
from tests.pipeline.doctor.damage import kinds, source, sql
from tests.pipeline.support import CountingEmbedder, contents, ingest, prose, write


def _empty(docs: Path, db: Path) -> None:
    shutil.rmtree(docs)
    docs.mkdir()
    ingest(db, source(docs), CountingEmbedder())


def _rebuilt(docs: Path, db: Path) -> None:
    ingest(db, source(docs), CountingEmbedder())
    ingest(db, source(docs), CountingEmbedder("model-b", dimensions=16), run=RunOptions(rebuild=True))


def _half_rebuilt(docs: Path, db: Path) -> None:
    ingest(db, source(docs), CountingEmbedder())
    ingest(
        db,
        source(docs),
        CountingEmbedder("model-b"),
        run=RunOptions(rebuild=True),
        budget=IngestionBudget(max_documents=1),
    )


def _trigram_l2(docs: Path, db: Path) -> None:
    ingest(db, source(docs), CountingEmbedder(), options=IngestionOptions(fts_tokenizer="trigram", distance="l2"))


def _two_collections(docs: Path, db: Path) -> None:
    ingest(db, source(docs), CountingEmbedder())
    with IngestionPipeline.open(db, collection="other", embedder=CountingEmbedder(dimensions=16)) as pipeline:
        pipeline.run(source(docs))


def _suspended(docs: Path, db: Path) -> None:
    ingest(db, source(docs), CountingEmbedder(), budget=IngestionBudget(max_documents=1))


def _suspended_in_a_document(docs: Path, db: Path) -> None:
    write(docs, {"a.md": "\n\n".join(prose(9, 30))})
    options = IngestionOptions(write_batch_size=2)
    ingest(db, source(docs), CountingEmbedder(), options=options, budget=IngestionBudget(max_chunks=4))
    assert contents(db)[3]


def _edited(docs: Path, db: Path) -> None:
    ingest(db, source(docs), CountingEmbedder())
    (docs / "0.md").unlink()
    write(docs, {"1.md": "# Another\n\n" + "\n\n".join(prose(1, 8)[2:]), "2.md": "", "bad.txt": b"\x00" * 99})
    ingest(db, source(docs), CountingEmbedder(fail_on=lambda text: "Another" in text))
    ingest(db, source(docs), CountingEmbedder())


@pytest.mark.parametrize(
    "make",
    [_empty, _rebuilt, _half_rebuilt, _trigram_l2, _two_collections, _suspended, _suspended_in_a_document, _edited],
)
def test_healthy(make: Callable[[Path, Path], None], docs: Path, tmp_path: Path) -> None:
    """Whatever a database has been through: if it is as it should be, nothing is found and nothing is done."""
    db = tmp_path / "made.db"
    make(docs, db)
    before = contents(db)
    for quick in (False, True):
        assert examine(db, quick=quick).found == ()
    assert (mend(db).found, mend(db).done) == ((), ())
    assert contents(db) == before


def test_a_file_that_an_application_owns(docs: Path, tmp_path: Path) -> None:
    """Its tables, a vector table of its own among them, and its schema version stay as they are."""
    db = tmp_path / "app.db"
    sql(
        "CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT)",
        "INSERT INTO note (body) VALUES ('mine')",
        "CREATE VIRTUAL TABLE note_vec USING vec0 (embedding float[4])",
        "INSERT INTO note_vec (rowid, embedding) VALUES (7, zeroblob(16))",
        "CREATE VIRTUAL TABLE note_fts USING fts5 (body)",
        "PRAGMA user_version = 4",
    )(db)
    ingest(db, source(docs), CountingEmbedder(), options=IngestionOptions(first_migration=5))
    assert examine(db).collections == ("chunks",)
    assert kinds(db) == []
    sql("DELETE FROM chunks_vec", "DELETE FROM chunks_fts_docsize")(db)
    assert mend(db).healthy
    with closing(Database(db, read_only=True)) as database:
        rows = database.connection.execute("SELECT body, embedding FROM note, note_vec").fetchall()
        assert rows == [("mine", bytes(16))]
        assert database.connection.pragma("user_version") == 6


def test_one_collection_of_two(docs: Path, tmp_path: Path) -> None:
    """With a name only that collection is looked at and mended."""
    db = tmp_path / "two.db"
    _two_collections(docs, db)
    sql("DELETE FROM chunks_vec WHERE rowid = 1", "DELETE FROM other_vec WHERE rowid = 1")(db)
    assert [(f.kind, f.collection) for f in examine(db).found] == [
        ("vectors_missing", "chunks"),
        ("vectors_missing", "other"),
    ]
    assert mend(db, "other").healthy
    assert [f.collection for f in examine(db).found] == ["chunks"]
    with pytest.raises(QedgeError) as error:
        examine(db, "third")
    assert error.value.code == 6002
