"""A real process, killed at random instants of an ingest that changes documents."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from mmap import mmap
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest

from qedge_dagster import FolderSource, IngestionOptions
from qedge_dagster.cli import main
from qedge_dagster.collection import Collection
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.integrity import check_integrity as integrity_problems
from qedge_dagster.collection.writer import CollectionWriter
from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.embedding.base import EmbeddingBatch
from qedge_dagster.extractors import ExtractionContext, TextExtractor
from qedge_dagster.pipeline import IngestionPipeline
from qedge_dagster.sources import SourceItem
from tests.pipeline.support import CountingEmbedder, check_integrity, contents, ingest, prose, write

_PHASES = ("start", "hash", "extract", "embed", "stage", "switch")
_WINDOW = 4
_PAUSE = 0.008
_OPTIONS = IngestionOptions(write_batch_size=_WINDOW)


class Phase:
    """Where the child is, in memory that outlives it."""

    def __init__(self) -> None:
        self._shared = mmap(-1, 1)

    def enter(self, phase: str) -> None:
        """Pause in the phase, so that every one is about as likely to be hit."""
        self._shared[0] = _PHASES.index(phase)
        time.sleep(_PAUSE)

    def reset(self) -> None:
        self._shared[0] = 0

    @property
    def current(self) -> str:
        return _PHASES[self._shared[0]]


class SlowExtractor:
    """The text extractor, with a pause where a kill may land. Takes the built-in one's place by its id."""

    _text = TextExtractor()
    id, version, variant = _text.id, _text.version, _text.variant
    extensions, media_types = _text.extensions, _text.media_types

    def __init__(self, phase: Phase) -> None:
        self._phase = phase

    def can_extract(self, item: SourceItem) -> bool:
        self._phase.enter("hash")  # asked just before the document is hashed
        return self._text.can_extract(item)

    def extract(self, item: SourceItem, context: ExtractionContext) -> ExtractedDocument:
        self._phase.enter("extract")
        return self._text.extract(item, context)


class LoggingEmbedder(CountingEmbedder):
    """Appends every text to a file, so that what a killed process embedded is known too."""

    def __init__(self, log: Path, phase: Phase) -> None:
        super().__init__()
        self._log = log
        self._phase = phase

    def embed_documents(self, texts: Sequence[str]) -> EmbeddingBatch:
        self._phase.enter("embed")
        with self._log.open("a") as stream:
            stream.write("".join(json.dumps(text) + "\n" for text in texts))
        return super().embed_documents(texts)


def _child(db: Path, docs: Path, log: Path, phase: Phase) -> None:
    add, stage = CollectionWriter.add, CollectionWriter.stage_vectors

    def slow_add(self: CollectionWriter, *arguments: object) -> None:
        add(self, *arguments)  # type: ignore[arg-type]
        phase.enter("switch")  # inside the transaction, after its first writes

    def slow_stage(self: CollectionWriter, *arguments: object) -> None:
        stage(self, *arguments)  # type: ignore[arg-type]
        phase.enter("stage")

    CollectionWriter.add = slow_add  # type: ignore[method-assign]
    CollectionWriter.stage_vectors = slow_stage  # type: ignore[method-assign]
    embedder, extractor = LoggingEmbedder(log, phase), SlowExtractor(phase)
    with IngestionPipeline.open(db, embedder=embedder, extractors=[extractor], options=_OPTIONS) as pipeline:
        pipeline.run(FolderSource(docs, source_id="s"))


def edition(docs: Path, number: int) -> None:
    """Half of each document changes; some documents come and go."""
    for name in range(5):
        text = prose(name, 10) + prose(1000 * number + name, 10)
        write(docs, {f"{name}.txt": "\n\n".join(text)})
    for name in ("x", "y"):
        (docs / f"{name}.txt").unlink(missing_ok=True)
    write(docs, {"x.txt" if number % 2 else "y.txt": "\n\n".join(prose(1000 * number + 99, 6))})


def by_document(db: Path) -> dict[object, set[tuple[object, ...]]]:
    rows: dict[object, set[tuple[object, ...]]] = {}
    for row in contents(db)[0]:
        rows.setdefault(row[2], set()).add(row)
    return rows


def _read(db: Path, stop: Event, told: Queue[tuple[int, str]]) -> None:
    """Search, and look whether everything agrees in what one snapshot shows, until told to stop."""
    looks = 0
    try:
        while not stop.wait(0.1):
            with closing(Database(db, read_only=True)) as opened:
                assert integrity_problems(opened, "chunks") == []
            with Collection.open(db, embedder=CountingEmbedder()) as collection:
                assert collection.hybrid_search("ba", top=5)
            looks += 1
    except BaseException as error:
        told.put((looks, repr(error)))
    else:
        told.put((looks, ""))


@contextmanager
def readers(db: Path, number: int) -> Generator[None]:
    """Processes that read all the time; none may fail."""
    context = multiprocessing.get_context("fork")
    stop, told = context.Event(), context.Queue()
    processes = [context.Process(target=_read, args=(db, stop, told)) for _ in range(number)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        stop.set()
        ends = [told.get(timeout=60) for _ in processes]
        for process in processes:
            process.join()
    print(f"{sum(looks for looks, _ in ends)} looks of {number} readers")
    assert [problem for _, problem in ends if problem] == []
    assert all(looks for looks, _ in ends)


def storm(tmp_path: Path, kills: int, seed: int) -> Iterator[tuple[Path, str]]:
    """Kill, check, finish, compare; yields the database after each kill, and the phase that was hit."""
    chance = random.Random(seed)
    docs, db, log, phase = tmp_path / "docs", tmp_path / "index.db", tmp_path / "log", Phase()
    edition(docs, 0)
    ingest(db, FolderSource(docs, source_id="s"), CountingEmbedder(), options=_OPTIONS)
    context = multiprocessing.get_context("fork")
    number = repeated = 0
    while number < kills:
        old = by_document(db)
        edition(docs, number + 1)
        reference = tmp_path / "reference.db"
        for path in tmp_path.glob("reference.db*"):
            path.unlink()
        whole = CountingEmbedder()
        # What is embedded from here on is what one uninterrupted run would embed, once.
        ingest(reference, FolderSource(docs, source_id="s"), whole, options=_OPTIONS)
        new = by_document(reference)
        log.write_text("")
        phase.reset()
        process = context.Process(target=_child, args=(db, docs, log, phase))
        process.start()
        process.join(chance.uniform(0.01, 0.9))
        hit = phase.current
        if process.is_alive():
            os.kill(process.pid or 0, signal.SIGKILL)
            process.join()
            number += 1
            yield db, hit
        assert process.exitcode in (0, -signal.SIGKILL)
        check_integrity(db)
        for document_id, rows in by_document(db).items():
            assert rows in (old.get(document_id), new.get(document_id)), document_id
        finisher = CountingEmbedder()
        result = ingest(db, FolderSource(docs, source_id="s"), finisher, options=_OPTIONS)
        assert result.outcome == "completed"
        assert contents(db) == contents(reference)
        embedded = Counter(json.loads(line) for line in log.read_text().splitlines()) + Counter(finisher.texts)
        again = sum(count - 1 for count in embedded.values())
        assert again <= _WINDOW
        repeated += again
    print(f"{number} kills, {repeated} texts embedded twice")


def test_a_kill_at_any_instant_loses_nothing(tmp_path: Path) -> None:
    """After each kill the index is consistent and every document wholly old or new; one more run ends as if nothing
    had happened, and repeats at most one window of embedding."""
    hits = Counter(phase for _, phase in storm(tmp_path, 10, seed=1))
    assert sum(hits.values()) == 10


@pytest.mark.long
def test_two_hundred_kills(tmp_path: Path) -> None:
    """Every phase is hit; `qedge diagnostics --counts` answers after each kill."""
    hits: Counter[str] = Counter()
    for db, phase in storm(tmp_path, 200, seed=2):
        hits[phase] += 1
        facts = diagnostics(db, tmp_path / "facts.json")
        assert facts["active_run"] is None
        assert facts["chunks"] > 0
    print(dict(hits))
    assert set(_PHASES[1:]) <= set(hits)


@pytest.mark.long
def test_five_hundred_kills_under_readers(tmp_path: Path) -> None:
    """The same while others read: no reader fails, and none sees a document that is half there."""
    kills = storm(tmp_path, 500, seed=3)
    db, phase = next(kills)
    hits = Counter([phase])
    with readers(db, 2):
        hits.update(phase for _, phase in kills)
    print(dict(hits))
    assert hits.total() == 500


def diagnostics(db: Path, output: Path) -> dict[str, Any]:
    """`qedge diagnostics --counts --json`, in a process of its own."""

    def command() -> None:
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        main(["diagnostics", "--counts", "--json", "--db", str(db)])

    process = multiprocessing.get_context("fork").Process(target=command)
    process.start()
    process.join()
    assert process.exitcode == 0
    return json.loads(output.read_text())
