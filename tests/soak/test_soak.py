"""Hundreds of runs over a folder that changes, with stops and kills, against a naive model."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import resource
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from qedge_dagster import ChunkingOptions, FolderSource, IngestionBudget, IngestionOptions, IngestionPipeline
from qedge_dagster.collection.connection import Database
from qedge_dagster.embedding.base import EmbeddingBatch
from qedge_dagster.pipeline.doctor import examine
from tests.pipeline.support import CountingEmbedder, contents
from tests.soak.library import Library

# Without overlap the texts of the chunks in a row are the text. Small windows, so that a kill finds some staged.
_OPTIONS = IngestionOptions(chunking=ChunkingOptions(max_tokens=64, overlap=0), write_batch_size=2)

# Children start from a process that has all loaded and has no threads.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.soak.test_soak"])

# SQLite writes the WAL into the database at 1,000 pages, at the end of the transaction that gets there.
_LARGEST_LOG = 3 * 1000 * 4096

Words = dict[str, list[str]]


class _Forgetful(CountingEmbedder):
    """Keeps no list of what it has embedded: the memory of the process is what is looked at."""

    def embed_documents(self, texts: Sequence[str]) -> EmbeddingBatch:
        batch = super().embed_documents(texts)
        self.texts.clear()
        return batch


@dataclass(frozen=True)
class _Reading:
    resident: int
    database: int
    log: int
    descriptors: int


class Soak:
    def __init__(self, root: Path, size: int, seed: int) -> None:
        self._root = root
        self._docs, self._database = root / "docs", root / "index.db"
        self._docs.mkdir()
        self._chance = random.Random(seed)
        self._library = Library(self._docs, size, self._chance)
        self._indexed: Words = {}
        self.readings: list[_Reading] = []
        self.ends: dict[str, int] = {}

    def run(self, cycles: int, every: int) -> None:
        with IngestionPipeline.open(self._database, embedder=_Forgetful(), options=_OPTIONS) as pipeline:
            self._complete(pipeline)
            for cycle in range(1, cycles + 1):
                self._library.change()
                what = self._chance.choice(["run", "run", "budget", "kill", "kill"])
                if what == "run":
                    end = self._complete(pipeline)
                elif what == "budget":
                    end = self._stop(pipeline)
                else:
                    end = self._kill()
                self.ends[end] = self.ends.get(end, 0) + 1
                if cycle % every == 0:
                    self._checkpoint(pipeline, cycle)

    def _complete(self, pipeline: IngestionPipeline) -> str:
        result = pipeline.run(self._source())
        assert result.outcome == "completed", result.failure
        found, failed = self._look()
        assert failed == {name for name, words in self._library.words.items() if words is None}
        assert found == self._wanted()
        self._indexed = found
        return "completed"

    def _stop(self, pipeline: IngestionPipeline) -> str:
        budget = IngestionBudget(max_chunks=self._chance.randint(1, 20))
        result = pipeline.run(self._source(), budget=budget)
        assert result.outcome in ("completed", "suspended"), result.failure
        self._partly()
        return result.outcome

    def _kill(self) -> str:
        """SIGKILL to a child after some of its events; most come before the child has ended."""
        events, theirs = _PROCESSES.Pipe(duplex=False)
        child = _PROCESSES.Process(target=_ingest, args=(self._database, self._docs, theirs))
        child.start()
        theirs.close()
        with suppress(EOFError):
            for _ in range(self._chance.randint(1, 40)):
                events.recv_bytes()
        child.kill()
        child.join()
        end = "killed" if child.exitcode else "too late to kill"
        child.close()
        events.close()
        self._partly()
        return end

    def _wanted(self) -> Words:
        """What a completed run leaves: a document that has become unreadable keeps what it said."""
        wanted: Words = {}
        for name, words in self._library.words.items():
            if words is not None:
                wanted[name] = words
            elif name in self._indexed:
                wanted[name] = self._indexed[name]
        return wanted

    def _partly(self) -> None:
        """Each document says what it said or what it says now, all of it."""
        found, _ = self._look()
        wanted = self._wanted()
        for name in found.keys() | wanted.keys() | self._indexed.keys():
            assert found.get(name) in (wanted.get(name), self._indexed.get(name)), name
        self._indexed = found

    def _look(self) -> tuple[Words, set[str]]:
        with closing(Database(self._database, read_only=True)) as database, database.snapshot():
            found: Words = {}
            for name, text in database.connection.execute(
                "SELECT document_id, text FROM chunks ORDER BY document_id, ordinal"
            ):
                found.setdefault(name, []).extend(text.split())
            failed = database.connection.execute(
                "SELECT document_id FROM qedge_ingest_document WHERE status = 'failed'"
            ).fetchall()
        return found, {name for (name,) in failed}

    def _checkpoint(self, pipeline: IngestionPipeline, cycle: int) -> None:
        self._library.mend()
        self._complete(pipeline)
        fresh = self._root / "fresh.db"
        fresh.unlink(missing_ok=True)
        with IngestionPipeline.open(fresh, embedder=_Forgetful(), options=_OPTIONS) as reference:
            assert reference.run(self._source()).outcome == "completed"
        assert contents(self._database) == contents(fresh)
        diagnosis = examine(self._database)
        assert diagnosis.healthy, diagnosis.as_dict()
        gc.collect()
        log = self._database.with_name("index.db-wal")
        reading = _Reading(_resident(), _size(self._database), _size(log), len(os.listdir("/proc/self/fd")))
        self.readings.append(reading)
        print(
            f"cycle {cycle}: resident {reading.resident / 2**20:.1f} MiB, database {reading.database / 2**20:.2f} MiB "
            f"(fresh {_size(fresh) / 2**20:.2f}), WAL {reading.log / 2**20:.2f} MiB, "
            f"descriptors {reading.descriptors}, {self.ends}",
            flush=True,
        )
        assert reading.database < 2 * _size(fresh) + 2**20
        assert _blocks(self._database) <= _blocks(fresh) / 0.8 + 2
        assert reading.log < _LARGEST_LOG

    def _source(self) -> FolderSource:
        return FolderSource(self._docs, source_id="s")


def _ingest(database: Path, docs: Path, events: Connection) -> None:
    """In the child: a run that tells of each of its events."""
    with IngestionPipeline.open(database, embedder=_Forgetful(), options=_OPTIONS) as pipeline:
        pipeline.run(FolderSource(docs, source_id="s"), on_event=lambda _: events.send_bytes(b"."))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _blocks(path: Path) -> int:
    with closing(Database(path, read_only=True)) as database:
        return database.connection.execute("SELECT count(*) FROM chunks_vec_chunks").get


def _soak(root: Path, *, size: int, cycles: int, every: int, seed: int = 1) -> Soak:
    soak = Soak(root, size, seed)
    soak.run(cycles, every)
    assert soak.ends.get("killed", 0) > 0
    assert len({reading.descriptors for reading in soak.readings}) == 1
    return soak


def test_some_cycles(tmp_path: Path) -> None:
    """After each cycle every document is whole, and at checkpoints the rows are those of a fresh ingest."""
    _soak(tmp_path, size=20, cycles=12, every=6)


@pytest.mark.long
def test_five_hundred_cycles(tmp_path: Path) -> None:
    """The same of 300 documents: the memory of the process stays flat, and the file small."""
    readings = _soak(tmp_path, size=300, cycles=500, every=25).readings
    # The allocator settles in the first fifth.
    settled = max(reading.resident for reading in readings[:4])
    assert max(reading.resident for reading in readings[4:]) < 1.15 * settled
