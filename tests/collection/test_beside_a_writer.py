"""Reading while others write, rebuild or drop the collection."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qedge_dagster.collection import Collection, Equal
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.schema import CollectionSpec, create_collection, drop_collection
from qedge_dagster.embedding.base import model_identity
from qedge_dagster.errors import QedgeError
from qedge_dagster.state import ModelRecord, StateStore
from tests.collection.support import ROWS, HashEmbedder, code_of, insert, row


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
