"""One run at a time per database, collection and source; readers are never in the way."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qedge_dagster import Collection, FolderSource, QedgeError, RunOptions
from qedge_dagster.pipeline import IngestionPipeline
from qedge_dagster.pipeline.events import Event, RunFinished, RunStarted
from tests.pipeline.support import CountingEmbedder, ingest, prose, write


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", {f"{number}.txt": "\n\n".join(prose(number, 8)) for number in range(6)})


@contextmanager
def one_running(
    docs: Path, db: Path
) -> Generator[tuple[Generator[Event, None, None], RunStarted, IngestionPipeline], None, None]:
    """A run that has started, and a pipeline beside it."""
    with (
        IngestionPipeline.open(db, embedder=CountingEmbedder()) as first,
        IngestionPipeline.open(db, embedder=CountingEmbedder()) as second,
    ):
        events = first.events(FolderSource(docs), RunOptions())
        started = next(events)
        assert isinstance(started, RunStarted)
        yield events, started, second


def test_a_second_run_in_the_process_is_refused(docs: Path, tmp_path: Path) -> None:
    """6008 names the active run; when that ends, the next may start."""
    with one_running(docs, tmp_path / "index.db") as (events, started, second):
        with pytest.raises(QedgeError) as error:
            second.run(FolderSource(docs))
        assert error.value.code == 6008
        assert started.run_id in error.value.message
        for _ in events:
            pass
        assert second.run(FolderSource(docs)).documents_skipped == 6


def test_a_stop_while_it_waits(docs: Path, tmp_path: Path) -> None:
    """A run that is stopped before its turn ends as cancelled; it is not on record, and the next one is not stopped."""
    with one_running(docs, tmp_path / "index.db") as (events, started, second):
        second.cancel()
        (only,) = second.events(FolderSource(docs), RunOptions(), lock_wait=3600)
        assert isinstance(only, RunFinished)
        assert (only.result.outcome, only.result.suspend_reason) == ("cancelled", "lifecycle:stopping")
        assert second.diagnostics()["active_run"] == started.run_id
        assert sum(1 for _ in events) > 6
        assert second.run(FolderSource(docs)).outcome == "completed"


def test_other_sources_may_run_meanwhile(docs: Path, tmp_path: Path) -> None:
    """The lock is of one source; the database takes both."""
    db, other = tmp_path / "index.db", write(tmp_path / "other", {"x.txt": "x"})
    with (
        IngestionPipeline.open(db, embedder=CountingEmbedder()) as first,
        IngestionPipeline.open(db, embedder=CountingEmbedder()) as second,
    ):
        events = first.events(FolderSource(docs), RunOptions())
        next(events)
        assert second.run(FolderSource(other)).documents_indexed == 1
        assert sum(1 for _ in events) > 6


def _hold(db: Path, docs: Path, ready: multiprocessing.synchronize.Event) -> None:
    with IngestionPipeline.open(db, embedder=CountingEmbedder()) as pipeline:
        for event in pipeline.events(FolderSource(docs), RunOptions()):
            if isinstance(event, RunStarted):
                ready.set()
                threading.Event().wait()


def test_a_killed_run_does_not_block_the_next(docs: Path, tmp_path: Path) -> None:
    """While it lives another process is refused; killed, it holds nothing, and is recorded as failed."""
    db = tmp_path / "index.db"
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(db, docs, ready))
    holder.start()
    try:
        assert ready.wait(60)
        with pytest.raises(QedgeError) as error:
            ingest(db, FolderSource(docs), CountingEmbedder())
        assert error.value.code == 6008
        with IngestionPipeline.open(db, embedder=CountingEmbedder()) as pipeline:
            assert pipeline.diagnostics()["active_run"] in error.value.message
    finally:
        holder.kill()
        holder.join()
    with IngestionPipeline.open(db, embedder=CountingEmbedder()) as pipeline:
        assert pipeline.diagnostics()["died_runs"] == 1
        assert pipeline.run(FolderSource(docs)).documents_indexed == 6
        assert pipeline.diagnostics()["died_runs"] == 0


def test_a_reader_never_fails_and_never_sees_half_a_document(tmp_path: Path) -> None:
    """Each version of the document says its number in every chunk: one search must find one number only."""
    docs, db = tmp_path / "docs", tmp_path / "index.db"

    def version(number: int) -> None:
        write(docs, {"a.txt": "\n\n".join(f"Version{number} part {part} " + "word " * 150 for part in range(8))})

    version(0)
    ingest(db, FolderSource(docs), CountingEmbedder())
    seen: list[set[str]] = []
    failures: list[Exception] = []
    stop = threading.Event()

    def read() -> None:
        with Collection.open(db, embedder=CountingEmbedder()) as collection:
            while not stop.is_set():
                try:
                    hits = collection.hybrid_search("word", top=50)
                except Exception as error:
                    failures.append(error)
                    return
                seen.append({hit.chunk.text.split()[0] for hit in hits if hit.chunk.text.startswith("Version")})

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(1, 15):
        version(number)
        assert ingest(db, FolderSource(docs), CountingEmbedder()).documents_indexed == 1
    stop.set()
    reader.join()
    assert failures == []
    assert {len(versions) for versions in seen} == {1}
    assert len({next(iter(versions)) for versions in seen}) > 2
