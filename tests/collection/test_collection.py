"""Opening a collection, the model behind a query, and reading beside a writer."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qedge_dagster.collection import Collection, Equal, connection
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.schema import CollectionSpec, create_collection, drop_collection
from qedge_dagster.embedding.base import model_identity
from qedge_dagster.errors import QedgeError
from qedge_dagster.state import ModelRecord, StateStore
from tests.collection.support import HashEmbedder, build, insert, row

ROWS = [row("roof leak", "a.md"), row("gutter", "a.md", 1), row("tile", "b.md")]


def code_of(call, *args, **options) -> int:
    with pytest.raises(QedgeError) as caught:
        call(*args, **options)
    return caught.value.code


@pytest.fixture
def path(tmp_path):
    build(tmp_path / "c.db", ROWS)
    return tmp_path / "c.db"


# opening


def test_a_file_of_another_connection_that_goes_meanwhile(path, monkeypatch):
    """SQLite's own files vanish when the last other connection is closed: that is no read-only file."""
    shared = path.with_name(path.name + "-shm")
    shared.touch()

    def access(file, _):
        if file == shared:
            shared.unlink(missing_ok=True)
            return False
        return True

    monkeypatch.setattr(connection.os, "access", access)
    with closing(Database(path)) as database:
        assert database.connection.execute("SELECT count(*) FROM chunks").get == len(ROWS)


def test_open_refuses_what_is_no_collection(tmp_path, path):
    """Each kind of wrong file has its code, and nothing is made or written by the attempt."""
    assert code_of(Collection.open, tmp_path / "absent.db") == 6002
    assert code_of(Collection.open, tmp_path) == 6002
    assert code_of(Collection.open, path, "other") == 6002
    assert code_of(Collection.open, path, "x; DROP TABLE chunks") == 6005
    (tmp_path / "text.db").write_text("no database " * 1_000)
    assert code_of(Collection.open, tmp_path / "text.db") == 6204
    (tmp_path / "empty.db").touch()
    assert code_of(Collection.open, tmp_path / "empty.db") == 6002
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as foreign:
        foreign.execute("CREATE TABLE chunks (a)")
    assert code_of(Collection.open, tmp_path / "foreign.db") == 6011
    assert not (tmp_path / "absent.db").exists()
    assert (tmp_path / "empty.db").stat().st_size == 0


def test_open_refuses_another_release(path):
    """A newer state, another hash and missing state are told apart."""
    with closing(Database(path)) as database:
        database.connection.execute("UPDATE qedge_ingest_meta SET value = '99' WHERE key = 'schema_version'")
        assert code_of(Collection.open, path) == 6203
        database.connection.execute("UPDATE qedge_ingest_meta SET value = '1' WHERE key = 'schema_version'")
        database.connection.execute("UPDATE qedge_ingest_meta SET value = 'md5' WHERE key = 'hash_algorithm'")
        assert code_of(Collection.open, path) == 6202
        database.connection.execute("DROP TABLE qedge_ingest_meta")
        assert code_of(Collection.open, path) == 6201


def test_the_connection_cannot_write(path):
    """Reading has no way to change the file."""
    with Collection.open(path) as collection:
        assert collection._database.connection.readonly("main")
        assert collection.spec().dimensions == 8


def test_a_closed_collection_says_so(path):
    """After `close` a search is an error with a code, and closing twice is none."""
    collection = Collection.open(path)
    collection.close()
    collection.close()
    assert code_of(collection.keyword_search, "roof") == 6002


def test_a_damaged_file_is_reported(path):
    """A page of noise where the chunks begin, then everywhere: 6204, no traceback of the database library."""
    with closing(Database(path)) as database:
        page = database.connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'chunks'").get
    content = bytearray(path.read_bytes())
    content[4096 * (page - 1) : 4096 * page] = b"\xff" * 4096
    path.write_bytes(content)
    with Collection.open(path) as collection:
        assert code_of(collection.keyword_search, "roof") == 6204
        assert code_of(list, collection.chunks()) == 6204
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    assert code_of(Collection.open, path) == 6204


# the model


def test_keyword_search_loads_no_model(path):
    """The embedder's factory is called by the first search that needs a vector, once."""
    made = []

    def factory() -> HashEmbedder:
        made.append(HashEmbedder())
        return made[-1]

    with Collection.open(path, embedder=factory) as collection:
        assert collection.keyword_search("roof")
        assert collection.hybrid_search("", ["roof"])
        assert collection.search([1] * 8)
        assert collection.search(" \n") == []
        assert made == []
        collection.search("roof")
        collection.hybrid_search("roof")
        assert [embedder.queries for embedder in made] == [2]


def test_text_without_an_embedder(path):
    """6208 for what needs a vector, and keyword search works."""
    with Collection.open(path) as collection:
        assert code_of(collection.search, "roof") == 6208
        assert code_of(collection.hybrid_search, "roof") == 6208
        assert collection.keyword_search("roof")


def test_another_model_is_refused(path):
    """The same dimension or not: 6012 names both models, and keyword search still works."""
    for other in (HashEmbedder(8, "other"), HashEmbedder(16, "other")):
        with Collection.open(path, embedder=other) as collection:
            assert code_of(collection.search, "roof") == 6012
            assert code_of(collection.hybrid_search, "roof") == 6012
            assert collection.keyword_search("roof")


def test_the_same_bytes_under_another_name(tmp_path):
    """A model file that was renamed is the same model."""
    embedder, renamed = HashEmbedder(8, "one"), HashEmbedder(8, "two")
    embedder.model_hash = renamed.model_hash = "ab" * 16
    build(tmp_path / "c.db", ROWS, embedder)
    with Collection.open(tmp_path / "c.db", embedder=renamed) as collection:
        assert collection.search("roof leak")[0].chunk.text == "roof leak"


@pytest.mark.parametrize(
    ("vector", "code"),
    [
        ([1.0] * 7, 6006),
        ([], 6005),
        ([0.0] * 8, 6005),
        ([float("nan")] * 8, 6005),
        ([float("inf")] + [0] * 7, 6005),
        ([1e300] * 8, 6005),
        ([[1.0] * 8], 6005),
        (["a"] * 8, 6005),
        (None, 6005),
        (3.0, 6005),
    ],
)
def test_vectors_that_are_near_to_nothing(path, vector, code):
    """Another dimension, zeros and what is no finite number are refused instead of ranking at random."""
    with Collection.open(path) as collection:
        assert code_of(collection.search, vector) == code


def test_the_length_of_a_vector_does_not_matter(path):
    """By cosine, a vector of any length ranks as its direction: neither overflow nor underflow."""
    with Collection.open(path) as collection:
        expected = collection.search(np.ones(8))
        for length in (1e-30, 1e-3, 1e30):
            assert collection.search(np.ones(8) * length) == expected
        assert collection.search([1] * 8) == expected


def test_a_failing_embedder(path):
    """What the embedder raises becomes 6206, a useless vector too, and its own error codes pass."""

    class Failing(HashEmbedder):
        answer: object = RuntimeError("boom")

        def embed_query(self, text):  # noqa: ARG002
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

    embedder = Failing()
    with Collection.open(path, embedder=embedder) as collection:
        assert code_of(collection.search, "roof") == 6206
        embedder.answer = np.zeros(8, dtype=np.float32)
        assert code_of(collection.search, "roof") == 6206
        embedder.answer = QedgeError(6208, "gone")
        assert code_of(collection.search, "roof") == 6208


@pytest.mark.parametrize(
    "text", ["C++", "what's up?", "foo:bar", '"', "", "🙂", "x" * 10_000, "a\0b", "\ud800", "*", "\n"]
)
def test_no_text_fails_a_search(path, text):
    """Any user string is answered by all three searches."""
    with Collection.open(path, embedder=HashEmbedder()) as collection:
        for search in (collection.search, collection.keyword_search, collection.hybrid_search):
            assert len(search(text)) in (0, 3)


def test_hybrid_search_with_a_vector(path):
    """A vector of one's own needs keywords beside it."""
    with Collection.open(path) as collection:
        assert collection.hybrid_search(np.ones(8), ["tile"])[0].keyword_rank == 1
        assert code_of(collection.hybrid_search, np.ones(8)) == 6005


# reading


def test_chunks_come_in_reading_order(path):
    """All of them, or those of one document or source, with every column."""
    with Collection.open(path) as collection:
        assert collection.chunk_count() == 3
        assert [(c.document_id, c.ordinal, c.text) for c in collection.chunks()] == [
            ("a.md", 0, "roof leak"),
            ("a.md", 1, "gutter"),
            ("b.md", 0, "tile"),
        ]
        assert [c.text for c in collection.chunks("b.md")] == ["tile"]
        assert [c.text for c in collection.chunks("b.md", "s")] == ["tile"]
        assert list(collection.chunks(source_id="other")) == []
        (tile,) = collection.chunks("b.md")
        assert collection.keyword_search("tile")[0].chunk == tile
        assert {name: getattr(tile, name) for name in ROWS[2] if name != "heading_path"} == {
            name: value for name, value in ROWS[2].items() if name != "heading_path"
        }
        assert (len(tile.content_hash), len(tile.key), tile.breadcrumb, tile.heading_path) == (16, 32, "", ())


def test_searches_go_on_while_chunks_are_iterated(path):
    """An iteration keeps its state of the database and holds up neither searches nor a writer."""
    with Collection.open(path) as collection, closing(Database(path)) as database:
        iterator = collection.chunks()
        next(iterator)
        with database.atomic():
            database.connection.execute("DELETE FROM chunks")
        assert collection.keyword_search("roof") == []
        assert len(list(iterator)) == 2
        abandoned = collection.chunks()
        abandoned.close()


def test_threads_share_a_collection(path):
    """Many threads at once get the answers that one thread gets."""
    with Collection.open(path, embedder=HashEmbedder) as collection, ThreadPoolExecutor(8) as pool:
        words = ["roof leak", "gutter", "tile", "roof"] * 25
        expected = {word: collection.hybrid_search(word) for word in set(words)}
        assert list(pool.map(collection.hybrid_search, words)) == [expected[word] for word in words]


# beside a writer


def rebuilt(path: Path, embedder: HashEmbedder, rows: list[dict]) -> None:
    """What a rebuild ends with: every table of the collection dropped and made again, in one transaction."""
    with closing(Database(path)) as database:
        with Collection.open(path) as collection:
            spec = replace(collection.spec(), dimensions=embedder.profile.dimensions)
        with database.atomic():
            drop_collection(database, spec.name)
            create_collection(database, spec)
            insert(database, spec.name, rows, embedder)
            StateStore(database, spec.name).put_model(ModelRecord(model_identity(embedder), embedder.profile.id))


def test_a_collection_stays_open_over_a_rebuild(path):
    """The old model answers until the switch and is refused after it; the new one the other way round."""
    old, new = HashEmbedder(8, "old-model"), HashEmbedder(16, "new-model")
    rebuilt(path, old, ROWS)
    with Collection.open(path, embedder=old) as by_old, Collection.open(path, embedder=new) as by_new:
        assert by_old.search("roof leak")[0].score == pytest.approx(1)
        assert code_of(by_new.search, "roof leak") == 6012
        rebuilt(path, new, ROWS)
        assert by_new.search("roof leak")[0].score == pytest.approx(1)
        assert by_new.hybrid_search("roof leak")[0].score == 1
        assert code_of(by_old.search, "roof leak") == 6012
        assert code_of(by_old.search, np.ones(8)) == 6006
        assert by_old.keyword_search("tile")[0].chunk.text == "tile"
        assert by_new.spec().dimensions == 16


def test_a_collection_that_is_dropped_under_a_reader(path):
    """6002, as if it had never been; and it works again once it is back."""
    with Collection.open(path, embedder=HashEmbedder()) as collection:
        with closing(Database(path)) as database, database.atomic():
            drop_collection(database, "chunks")
        assert code_of(collection.search, "roof") == 6002
        with closing(Database(path)) as database, database.atomic():
            create_collection(database, _SPEC)
        assert collection.search("roof") == []


def _switch_documents(path: Path, started, stop) -> None:
    """Replace a document by its next edition until told to stop; now and then the whole collection, with another
    dimension."""
    edition = 0
    with closing(Database(path, busy_timeout_ms=20_000)) as database:
        while not stop.is_set():
            edition += 1
            with database.atomic():
                embedder = _embedder_of(edition)
                if edition % 10 == 0:
                    spec = replace(_SPEC, dimensions=embedder.profile.dimensions)
                    drop_collection(database, "chunks")
                    create_collection(database, spec)
                    StateStore(database, "chunks").put_model(ModelRecord(model_identity(embedder), "m"))
                else:
                    database.connection.execute("DELETE FROM chunks")
                insert(database, "chunks", _document(edition), embedder)
            started.set()


_SPEC = CollectionSpec(dimensions=8)


def _embedder_of(edition: int) -> HashEmbedder:
    return HashEmbedder(8 if edition // 10 % 2 == 0 else 16, "m")


def _document(edition: int) -> list[dict]:
    return [row(f"roof {edition}", "a.md", number, key=f"{edition}-{number}") for number in range(10)]


def test_a_reader_beside_a_writer_sees_whole_documents(path):
    """While another process switches a document and rebuilds the collection, every search succeeds and all its hits
    are of one edition: nothing is half old and half new."""
    rebuilt(path, _embedder_of(0), _document(0))
    context = multiprocessing.get_context("spawn")
    started, stop = context.Event(), context.Event()
    writer = context.Process(target=_switch_documents, args=(path, started, stop))
    writer.start()
    editions, failures = set(), []

    def read(embedder: HashEmbedder) -> None:
        with Collection.open(path, embedder=embedder) as collection:
            for turn in range(150):
                searches = (
                    lambda: collection.keyword_search("roof", top=50),
                    lambda: collection.search("roof", top=50),
                    lambda: collection.hybrid_search("roof", top=50, filter=Equal("document_id", "a.md")),
                    lambda: list(collection.chunks()),
                )
                try:
                    found = searches[turn % 4]()
                except QedgeError as error:
                    if error.code != 6012:
                        raise
                    continue  # rebuilt with the other model
                keys = [getattr(hit, "chunk", hit).key for hit in found]
                of = {key.split("-")[0] for key in keys}
                editions.update(of)
                if len(keys) != 10 or len(of) != 1:
                    failures.append(keys)

    try:
        assert started.wait(60)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(read, (HashEmbedder(8, "m"), HashEmbedder(16, "m"))))
    finally:
        stop.set()
        writer.join(60)
    assert failures == []
    assert writer.exitcode == 0
    assert len(editions) > 3


def test_a_reader_never_blocks_the_writer(path):
    """A transaction is committed at once although a snapshot is open, and the snapshot does not move."""
    with closing(Database(path, busy_timeout_ms=0)) as database, Collection.open(path) as collection:
        with collection._reading():
            with database.atomic():
                database.connection.execute("DELETE FROM chunks WHERE document_id = 'b.md'")
            count = collection._database.connection.execute("SELECT count(*) FROM chunks").get
            assert count == 3
        assert collection.chunk_count() == 2


def test_a_slow_embedder_holds_up_nobody(path):
    """While one thread waits for the model, another searches."""
    asked, release = threading.Event(), threading.Event()

    class Slow(HashEmbedder):
        def embed_query(self, text):
            asked.set()
            assert release.wait(30)
            return super().embed_query(text)

    with Collection.open(path, embedder=Slow()) as collection, ThreadPoolExecutor(1) as pool:
        slow = pool.submit(collection.search, "roof leak")
        assert asked.wait(30)
        assert collection.keyword_search("tile")
        assert collection.search([1] * 8)
        release.set()
        assert slow.result(30)[0].chunk.text == "roof leak"
