"""What a repair leaves alone, and looking beside others who use the database."""

from __future__ import annotations

import os
import tracemalloc
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from qedge_dagster import (
    IngestionPipeline,
    QedgeError,
    RunOptions,
)
from qedge_dagster.collection.connection import Database
from qedge_dagster.pipeline.doctor import examine, mend
from tests.collection.support import HashEmbedder, build, row
from tests.pipeline.doctor.damage import DAMAGE, empty_index, kinds, source, sql
from tests.pipeline.support import CountingEmbedder, write


def test_damaged_pages(db: Path) -> None:
    """What only a backup brings back is said, and a repair changes nothing."""
    with closing(Database(db)) as database:
        page = database.connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'chunks'").get
    content = bytearray(db.read_bytes())
    content[4096 * (page - 1) : 4096 * page] = os.urandom(4096)
    db.write_bytes(content)
    found = examine(db).found
    assert {finding.kind for finding in found} == {"file_damaged"}
    assert "restore the file from a backup" in found[0].remedy
    mended = mend(db)
    assert not mended.healthy
    assert mended.done == ()
    assert db.read_bytes() == content


def test_an_index_of_another_owner(db: Path) -> None:
    """It is told, and left to its owner; the collection is looked at all the same."""
    sql("CREATE TABLE app (x)", "CREATE INDEX app_x ON app (x)", "INSERT INTO app VALUES (1)")(db)
    empty_index(db, "app_x")
    DAMAGE["vectors deleted"][0](db)
    mended = mend(db)
    assert [finding.kind for finding in mended.found] == ["other_index_damaged", "vectors_missing"]
    assert [(finding.kind, finding.examples) for finding in mended.left] == [("other_index_damaged", ("app_x",))]


def test_a_model_record_is_not_made_up(db: Path) -> None:
    """Without it nobody knows which model made the vectors: a repair must not let the next run take any."""
    sql("UPDATE qedge_ingest_meta SET value = 'x' WHERE key = 'chunks/model'")(db)
    mended = mend(db)
    assert [finding.kind for finding in mended.left] == ["model_damaged"]
    assert mended.done == ()


def test_no_database(tmp_path: Path) -> None:
    """6204 for what is no SQLite file, 6002 for no file, another file or an unknown collection; none is made."""
    (tmp_path / "text.db").write_text("no database at all, only a text" * 100, "utf-8")
    apsw.Connection(str(tmp_path / "other.db")).execute("CREATE TABLE t (x)")
    for name, code in {"text.db": 6204, "other.db": 6002, "none.db": 6002}.items():
        for look in (examine, mend):
            with pytest.raises(QedgeError) as error:
                look(tmp_path / name)
            assert error.value.code == code
    assert not (tmp_path / "none.db").exists()


def test_a_database_that_is_read_only(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be looked over, full text against the text included; a repair is refused with 6205."""
    DAMAGE["full-text entry of another text"][0](db)
    with closing(Database(db)) as database:
        database.connection.pragma("journal_mode", "delete")
    real = Database

    def read_only(path: Path, *, read_only: bool = False) -> Database:  # noqa: ARG001 - as SQLite opens it then
        return real(path, read_only=True)

    content = db.read_bytes()
    assert kinds(db) == ["full_text_stale"]
    monkeypatch.setattr("qedge_dagster.pipeline.doctor.Database", read_only)
    with pytest.raises(QedgeError) as error:
        mend(db)
    assert error.value.code == 6205
    assert db.read_bytes() == content


def test_while_a_run_is_active(db: Path, docs: Path) -> None:
    """Looking is allowed and finds nothing wrong; a repair is refused with 6008, which names the run."""
    write(docs, {"new.md": "# New\n\nA new text."})
    with IngestionPipeline.open(db, embedder=CountingEmbedder()) as pipeline:
        events = pipeline.events(source(docs), RunOptions())
        run_id = next(events).run_id  # type: ignore[union-attr]
        seen = examine(db)
        assert (seen.found, seen.notes) == ((), (f"chunks: run {run_id} is active",))
        with pytest.raises(QedgeError) as error:
            mend(db)
        assert error.value.code == 6008
        assert run_id in error.value.message
        for _ in events:
            pass
        assert pipeline.doctor(repair=True).healthy


def test_looking_never_waits_for_a_writer(db: Path) -> None:
    """Another program may hold the write lock all the time."""
    with closing(Database(db)) as writer, writer.atomic():
        writer.connection.execute("UPDATE chunks SET ordinal = 99")
        assert kinds(db) == []


def test_memory_does_not_grow_with_the_collection(tmp_path: Path) -> None:
    """A look, and a repair that goes over every row, hold a block of vectors and a document, not 12 MiB of them."""
    db = tmp_path / "large.db"
    rows = (row(f"chunk {n} " + "word " * 200, f"d{n // 10}", n % 10) for n in range(6_000))
    build(db, rows, HashEmbedder(256))
    sql("UPDATE chunks_vec_rowids SET chunk_offset = 77 WHERE rowid = 1")(db)
    assert db.stat().st_size > 12 << 20
    for look in (examine, mend):
        tracemalloc.start()
        try:
            assert [finding.kind for finding in look(db).found] == ["vectors_misplaced"]
            assert tracemalloc.get_traced_memory()[1] < 3 << 20
        finally:
            tracemalloc.stop()
    assert kinds(db) == []


def test_progress_names_what_is_looked_at(db: Path) -> None:
    """Counts end at their total."""
    told: dict[str, tuple[int, int]] = {}
    examine(db, on_progress=lambda what, done, total: told.update({what: (done, total)}))
    assert list(told) == ["the file", "chunks: texts", "chunks: vectors", "chunks: full text"]
    assert told["chunks: texts"][0] == told["chunks: texts"][1] == told["chunks: vectors"][1] > 0
