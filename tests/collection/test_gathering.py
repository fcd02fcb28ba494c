"""The blocks of vec0 stay few however often rows are replaced, and nobody notices that they are emptied."""

from __future__ import annotations

import math
import multiprocessing
import os
import shutil
import signal
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from qedge_dagster import FolderSource, IngestionPipeline
from qedge_dagster.collection import Collection, Equal
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.gathering import gather_vectors
from tests.collection.support import HashEmbedder, build, insert, row
from tests.pipeline.support import check_integrity, tokenizer, write

_SLOTS = 256
_ROWS = 6 * 60 + 108
_PROCESSES = multiprocessing.get_context("spawn")


def blocks(path: Path) -> int:
    with closing(Database(path, read_only=True)) as database:
        return database.connection.execute("SELECT count(*) FROM chunks_vec_chunks").get


def bound(rows: int) -> int:
    """Four fifths of the slots in use, and the newest block besides."""
    return math.ceil(rows / (_SLOTS * 0.8)) + 1


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six blocks with 60 of 256 slots in use, and the newest with 108. Each document has one chunk."""
    path = tmp_path_factory.mktemp("template") / "c.db"
    build(path, [row(f"word{n} leak", f"{n:04}.md") for n in range(1644)])
    with closing(Database(path)) as database, database.atomic():
        database.connection.execute("DELETE FROM chunks WHERE _rowid <= 1536 AND _rowid % 256 >= 60")
        database.connection.execute(
            "DELETE FROM qedge_ingest_document WHERE document_id NOT IN (SELECT document_id FROM chunks)"
        )
    assert blocks(path) == 7
    return path


@pytest.fixture
def sparse(tmp_path: Path, template: Path) -> Path:
    return Path(shutil.copy(template, tmp_path / "c.db"))


def answers(path: Path) -> list[object]:
    queries = np.random.default_rng(0).normal(size=(5, 8))
    with Collection.open(path, embedder=HashEmbedder()) as collection:
        return [
            *(collection.search(query, top=20) for query in queries),
            collection.hybrid_search("word7 leak", top=20),
            collection.search(queries[0], filter=Equal("document_id", "0007.md")),
            list(collection.chunks()),
        ]


def test_replacing_rows_keeps_the_blocks_few(tmp_path):
    """Without a gathering, each of these rounds would leave a block behind."""
    path = tmp_path / "c.db"
    build(path, [row(f"text {n}", f"{n}.md") for n in range(600)])
    chance = np.random.default_rng(1)
    with closing(Database(path)) as database:
        for cycle in range(40):
            with database.atomic():
                for n in chance.choice(600, size=60, replace=False):
                    database.connection.execute("DELETE FROM chunks WHERE document_id = ?", (f"{n}.md",))
                    insert(database, "chunks", [row(f"text {n} of {cycle}", f"{n}.md")], HashEmbedder())
            gather_vectors(database, "chunks")
            assert blocks(path) <= bound(600), cycle
    check_integrity(path)


def test_searches_find_the_same(sparse):
    """Hits, scores, order and rows are those of before."""
    before = answers(sparse)
    with closing(Database(sparse)) as database:
        assert gather_vectors(database, "chunks") > 0
        assert gather_vectors(database, "chunks") == 0
    assert blocks(sparse) <= bound(_ROWS)
    assert answers(sparse) == before
    check_integrity(sparse)


def test_free_pages_are_used_again(sparse):
    """What a gathering frees is where new vectors go: the file does not grow for them."""
    with closing(Database(sparse)) as database:
        gather_vectors(database, "chunks")
        free = database.connection.pragma("freelist_count")
        with database.atomic():
            insert(database, "chunks", [row("one more", f"more{n}.md") for n in range(_SLOTS)], HashEmbedder())
        assert database.connection.pragma("freelist_count") < free


def test_a_stop_comes_between_two_blocks(sparse):
    """It is asked for before each block; the next gathering does the rest."""
    asked = iter([False, True])
    with closing(Database(sparse)) as database:
        assert gather_vectors(database, "chunks", lambda: next(asked)) == 60
        assert gather_vectors(database, "chunks", seconds=0) == 0
        assert blocks(sparse) == 6
        assert gather_vectors(database, "chunks") > 0


def test_nothing_to_gather(tmp_path):
    """An empty collection, or none, is left alone."""
    build(tmp_path / "c.db", [])
    with closing(Database(tmp_path / "c.db")) as database:
        assert gather_vectors(database, "chunks") == 0
        assert gather_vectors(database, "other") == 0


def _killed(path: Path, at: int) -> None:
    """In the child: SIGKILL at the `at`-th row that is written."""
    written = 0

    def hook(*_: object) -> None:
        nonlocal written
        written += 1
        if written == at:
            os.kill(os.getpid(), signal.SIGKILL)

    with closing(Database(path)) as database:
        database.connection.set_update_hook(hook)
        gather_vectors(database, "chunks")


@pytest.mark.parametrize("at", [30, 400])
def test_a_kill_changes_nothing(sparse, at):
    """Each row is in the block that it was in or in its new one, and the next gathering goes on."""
    before = answers(sparse)
    child = _PROCESSES.Process(target=_killed, args=(sparse, at))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    check_integrity(sparse)
    assert answers(sparse) == before
    with closing(Database(sparse)) as database:
        assert gather_vectors(database, "chunks") > 0
    assert blocks(sparse) <= bound(_ROWS)
    assert answers(sparse) == before


def _run(pipeline: IngestionPipeline, docs: Path) -> None:
    assert pipeline.run(FolderSource(docs, source_id="s")).outcome == "completed"


def _prune(pipeline: IngestionPipeline, docs: Path) -> None:
    pipeline.prune(FolderSource(docs, source_id="s"))


def _remove(pipeline: IngestionPipeline, _docs: Path) -> None:
    pipeline.remove("s", ["0001.md"])


def _repair(pipeline: IngestionPipeline, _docs: Path) -> None:
    assert pipeline.doctor(repair=True).done
    assert not pipeline.doctor(repair=True).done


@pytest.mark.parametrize("act", [_run, _prune, _remove, _repair])
def test_whatever_takes_rows_out_gathers(sparse, tmp_path, act):
    """At the end of each, and in a repair, which has nothing to do a second time."""
    docs = write(tmp_path / "docs", {"0000.md": "word0 leak", "0001.md": "word1 leak"})
    embedder = HashEmbedder()
    embedder.tokenizer = tokenizer()
    with IngestionPipeline.open(sparse, embedder=embedder) as pipeline:
        act(pipeline, docs)
    with closing(Database(sparse)) as database:
        rows = database.connection.execute("SELECT count(*) FROM chunks").get
    assert blocks(sparse) <= bound(rows)
