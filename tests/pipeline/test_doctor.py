"""Each kind of damage is found, and nothing else; a repair mends it; and the next run makes good what was lost."""

from __future__ import annotations

import os
import shutil
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from qedge_dagster import (
    Collection,
    FolderSource,
    IngestionBudget,
    IngestionOptions,
    IngestionPipeline,
    QedgeError,
    RunOptions,
)
from qedge_dagster.artifacts.files import ArtifactFolder
from qedge_dagster.collection.connection import Database
from qedge_dagster.pipeline.doctor import examine, mend
from qedge_dagster.pipeline.lock import lock_path
from qedge_dagster.state import StageVersions
from tests.collection.support import HashEmbedder, build, row
from tests.pipeline.support import CountingEmbedder, contents, ingest, prose, write

Damage = Callable[[Path], None]

TEXT = {f"{n}.md": f"# Title {n}\n\n" + "\n\n".join(prose(n, 8)) for n in range(4)}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    ingest(folder / "index.db", source(write(folder / "docs", TEXT)), CountingEmbedder())
    return folder


@pytest.fixture
def docs(tmp_path: Path, template: Path) -> Path:
    return Path(shutil.copytree(template / "docs", tmp_path / "docs"))


@pytest.fixture
def db(tmp_path: Path, template: Path) -> Path:
    return Path(shutil.copy(template / "index.db", tmp_path / "index.db"))


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


def _empty_index(db: Path, name: str = "chunks_document_id") -> None:
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
    "index emptied": (_empty_index, ["index_damaged"]),
    "state without tables": (_state_of_nothing, ["state_without_tables"]),
    "lock file left over": (_stale_lock, ["locks_stale"]),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found_mended_and_made_good(name: str, db: Path, docs: Path) -> None:
    """Exactly this is found; after a repair nothing is; after the next run the rows are those of a sound database."""
    damage, expected = DAMAGE[name]
    before = contents(db)
    damage(db)
    assert kinds(db) == expected
    mended = mend(db)
    assert [finding.kind for finding in mended.found] == expected
    assert mended.done
    assert mended.healthy
    assert kinds(db) == []
    again = mend(db)
    assert (again.found, again.done) == ((), ())
    assert ingest(db, source(docs), CountingEmbedder()).outcome == "completed"
    assert contents(db) == before
    assert kinds(db) == []


@pytest.mark.parametrize("name", ["full-text entry deleted", "slot of another row", "index emptied", "trigger dropped"])
def test_what_the_file_holds_twice_costs_no_document(name: str, db: Path, docs: Path) -> None:
    """A repair from the file itself leaves nothing to be read or embedded again."""
    DAMAGE[name][0](db)
    before = contents(db)
    mend(db)
    result = ingest(db, source(docs), CountingEmbedder())
    assert (result.documents_skipped, result.texts_embedded) == (len(TEXT), 0)
    assert contents(db)[1:] == before[1:]


def test_a_vector_is_taken_from_an_equal_text(tmp_path: Path) -> None:
    """A chunk whose text is in the collection twice gets its vector back, and no document is indexed again."""
    docs, db = write(tmp_path / "docs", {"a.txt": "the same text", "b.txt": "the same text"}), tmp_path / "index.db"
    ingest(db, source(docs), CountingEmbedder())
    before = contents(db)
    sql("DELETE FROM chunks_vec WHERE rowid = 1")(db)
    assert mend(db).done == ("chunks: 1 chunks were given the vector of an equal text",)
    assert contents(db) == before


def test_equal_texts_of_one_document(tmp_path: Path) -> None:
    """The keys of equal texts count: with the first one damaged the others are right again after the next run."""
    block = "\n\n".join(f"## Same\n\n{'word ' * 150}" for _ in range(5))
    docs, db = write(tmp_path / "docs", {"a.md": block}), tmp_path / "index.db"
    ingest(db, source(docs), CountingEmbedder())
    before = contents(db)
    sql("UPDATE chunks SET text = 'x' WHERE _rowid = 1")(db)
    assert mend(db).healthy
    assert kinds(db) == []
    ingest(db, source(docs), CountingEmbedder())
    assert contents(db) == before


def test_artefacts_of_no_current_version(db: Path, tmp_path: Path) -> None:
    """They are found and deleted; current ones, and those of a run that is under way, are left alone."""
    root, folder = tmp_path / "artifacts", ArtifactFolder(tmp_path / "artifacts", "chunks")
    with closing(Database(db)) as database:
        row = database.connection.execute(
            "SELECT extracted, chunks, embeddings, collection_rows FROM qedge_ingest_version WHERE document_id = '0.md'"
        ).fetchone()
    current = folder.paths("s", "0.md", StageVersions(*row))["document_chunks"]
    old = folder.paths("s", "0.md", StageVersions(*[bytes(16)] * 4))["document_chunks"]
    other = folder.paths("gone", "0.md", StageVersions(*row))["document_chunks"]
    current.parent.mkdir(parents=True)
    for path in (current, old, other):
        path.touch()
    assert [(f.kind, f.count) for f in examine(db, artifacts=root).found] == [("artifacts_leftover", 2)]
    assert mend(db, artifacts=root).healthy
    assert list(current.parent.iterdir()) == [current]


# what cannot be mended


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
    _empty_index(db, "app_x")
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


# healthy databases


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


# beside runs


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


def test_a_repaired_database_answers(db: Path) -> None:
    """Search works between a repair and the next run: what is lost is not found, the rest is."""
    DAMAGE["vectors deleted"][0](db)
    mend(db)
    with Collection.open(db, embedder=CountingEmbedder()) as collection:
        kept = collection.chunk_count()
        assert len(collection.search("word", top=kept + 5)) == kept
