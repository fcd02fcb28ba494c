"""Opening a collection, the model behind a query, and reading."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from qedge_dagster.collection import Collection, connection
from qedge_dagster.collection.connection import Database
from qedge_dagster.errors import QedgeError
from tests.collection.support import ROWS, HashEmbedder, build, code_of

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
