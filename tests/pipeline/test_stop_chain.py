"""From the request to stop to the end of the process: a boundary, a merge, an empty WAL. And pauses on the way."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, cast

import apsw
import pytest

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.writer import CollectionWriter
from qedge_dagster.embedding.base import BatchwiseEmbedder, EmbeddingBatch
from qedge_dagster.errors import QedgeError
from qedge_dagster.pipeline.events import Event, WindowEmbedded
from qedge_dagster.pipeline.options import IngestionBudget, IngestionOptions
from qedge_dagster.pipeline.pipeline import IngestionPipeline
from qedge_dagster.pipeline.stop import StopBudget
from qedge_dagster.pipeline.throttle import Readings
from qedge_dagster.sources import FolderSource, StreamSource
from tests.pipeline.support import CountingEmbedder, check_integrity, contents, ingest, prose, write


class _Batchwise(CountingEmbedder):
    """Two texts a batch. At `stop_at` texts it asks the pipeline to stop, as a signal in the middle of a call would."""

    def __init__(self) -> None:
        super().__init__()
        self.pipeline: IngestionPipeline | None = None
        self.stop_at = 0

    def embed_in_batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], EmbeddingBatch]]:
        for start in range(0, len(texts), 2):
            positions = list(range(start, min(start + 2, len(texts))))
            batch = self.embed_documents([texts[position] for position in positions])
            if self.pipeline is not None and len(self.texts) == self.stop_at:
                self.pipeline.cancel()
            yield positions, batch


def _documents(root: Path, count: int = 2, paragraphs: int = 60) -> FolderSource:
    write(root, {f"{n}.txt": "\n\n".join(prose(n, paragraphs)) for n in range(count)})
    return FolderSource(root)


def test_a_stop_in_the_middle_of_a_window(tmp_path: Path) -> None:
    """What was embedded before is kept: no text is embedded twice, and the rows are those of a run without a stop."""
    source = _documents(tmp_path / "docs")
    embedder = _Batchwise()
    assert isinstance(embedder, BatchwiseEmbedder)
    embedder.stop_at = 6
    with IngestionPipeline.open(tmp_path / "a.db", embedder=embedder) as pipeline:
        embedder.pipeline = pipeline
        stopped = pipeline.run(source)
        assert (stopped.outcome, stopped.texts_embedded, stopped.chunks_added) == ("cancelled", 6, 0)
        assert pipeline.run(source).outcome == "completed"  # the flag is down again
    reference = CountingEmbedder()
    ingest(tmp_path / "b.db", source, reference)
    assert sorted(embedder.texts) == sorted(reference.texts)
    assert contents(tmp_path / "a.db") == contents(tmp_path / "b.db")


class _StopIn:
    """Has a pipeline cancelled when `method` of a class is called for the `number`th time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, method: str, number: int) -> None:
        self.pipeline: IngestionPipeline | None = None
        self.calls = 0
        original = getattr(owner, method)

        def counted(*args: Any, **options: Any) -> Any:
            self.calls += 1
            if self.pipeline is not None and self.calls == number:
                self.pipeline.cancel()
            return original(*args, **options)

        monkeypatch.setattr(owner, method, counted)


@pytest.mark.parametrize("edited", [False, True])
def test_a_stop_in_the_middle_of_a_switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edited: bool) -> None:
    """A document too long to be waited for stays as it was; what was embedded for it serves the next run."""
    monkeypatch.setattr("qedge_dagster.pipeline.document._ROWS_BETWEEN_STOPS", 8)
    documents, embedder = tmp_path / "docs", CountingEmbedder()
    path = tmp_path / "a.db"
    if edited:
        ingest(path, _documents(documents, 1), embedder)
    before = contents(path)[:2] if edited else [[], []]
    source = FolderSource(write(documents, {"0.txt": "\n\n".join(prose(7, 60))}))
    stop = _StopIn(monkeypatch, CollectionWriter, "add", 1)
    with IngestionPipeline.open(path, embedder=embedder) as pipeline:
        stop.pipeline = pipeline
        assert pipeline.run(source).outcome == "cancelled"
    assert stop.calls == 1
    assert contents(path)[:2] == before
    check_integrity(path)
    assert ingest(path, source, embedder).outcome == "completed"
    ingest(tmp_path / "b.db", source, CountingEmbedder())
    assert contents(path) == contents(tmp_path / "b.db")
    assert len(embedder.texts) == len(set(embedder.texts))


def test_a_stop_in_the_middle_of_a_document_that_is_read(tmp_path: Path) -> None:
    """A source that is slow to give its bytes is not waited for."""
    reads = 0

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            nonlocal reads
            reads += 1
            if reads == 2:
                pipeline.cancel()
            return super().read(size)

    text = ("\n\n".join(prose(1, 500))).encode()
    source = StreamSource("a.txt", "text/plain", lambda: cast("BinaryIO", Slow(text)), "slow")
    with IngestionPipeline.open(tmp_path / "a.db", embedder=CountingEmbedder()) as pipeline:
        assert pipeline.run(source).outcome == "cancelled"
    assert reads == 2
    assert contents(tmp_path / "a.db")[:2] == [[], []]


def test_a_stop_in_the_middle_of_removals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was removed by then is gone, the rest goes with the next run."""
    source = _documents(tmp_path / "docs", 10, 2)
    path = tmp_path / "a.db"
    ingest(path, source, CountingEmbedder())
    for number in range(1, 10):
        (tmp_path / "docs" / f"{number}.txt").unlink()
    stop = _StopIn(monkeypatch, CollectionWriter, "delete_document", 3)
    with IngestionPipeline.open(path, embedder=CountingEmbedder()) as pipeline:
        stop.pipeline = pipeline
        stopped = pipeline.run(source)
        assert (stopped.outcome, stopped.documents_removed) == ("cancelled", 3)
        check_integrity(path)
        assert (again := pipeline.run(source)).outcome == "completed"
        assert again.documents_removed == 6
    check_integrity(path)


def test_the_file_is_left_tidy(tmp_path: Path) -> None:
    """Although another connection keeps the WAL, it is empty after a stop, and what the steps took is on record."""
    source = _documents(tmp_path / "docs", 20, 5)
    path = tmp_path / "a.db"
    seen = 0

    def stop_after_some(event: Event) -> None:
        nonlocal seen
        seen += isinstance(event, WindowEmbedded)
        if seen == 15:
            pipeline.request_stop()

    with IngestionPipeline.open(path, embedder=CountingEmbedder()) as pipeline:
        with closing(Database(path, read_only=True)) as reader:
            reader.connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
            assert pipeline.run(source, on_event=stop_after_some).outcome == "suspended"
            assert path.with_name("a.db-wal").stat().st_size == 0
        facts = pipeline.diagnostics()
    steps = [facts[f"last_stop_{step}_seconds"] for step in ("boundary", "merge", "checkpoint")]
    assert all(isinstance(seconds, float) and seconds >= 0 for seconds in steps)
    check_integrity(path)


def test_the_full_text_index_is_merged(tmp_path: Path) -> None:
    """Many small segments become few, and searches find the same."""
    path = tmp_path / "a.db"
    source = _documents(tmp_path / "docs", 40, 3)
    ingest(path, source, CountingEmbedder())
    write(tmp_path / "docs", {"40.txt": "\n\n".join(prose(40, 40)), "41.txt": "more"})
    segments = _segments(path)
    with IngestionPipeline.open(path, embedder=CountingEmbedder()) as pipeline:
        result = pipeline.run(
            source, on_event=lambda event: pipeline.cancel() if isinstance(event, WindowEmbedded) else None
        )
    assert result.outcome == "cancelled"
    assert _segments(path) < segments
    check_integrity(path)


def _segments(path: Path) -> int:
    with closing(apsw.Connection(str(path))) as connection:
        return connection.execute("SELECT count(DISTINCT segid) FROM chunks_fts_idx").get


def test_a_reader_that_does_not_let_go(tmp_path: Path) -> None:
    """A long read keeps the WAL from being emptied: the stop ends all the same, and nothing is lost."""
    source = _documents(tmp_path / "docs", 6, 5)
    path = tmp_path / "a.db"
    options = IngestionOptions(stop=StopBudget(checkpoint=0.1))
    ingest(path, FolderSource(tmp_path / "docs", pattern="0.txt"), CountingEmbedder())
    with closing(Database(path, read_only=True)) as reader, reader.snapshot():
        reader.connection.execute("SELECT count(*) FROM chunks").fetchall()
        with IngestionPipeline.open(path, embedder=CountingEmbedder(), options=options) as pipeline:
            result = pipeline.run(
                source, on_event=lambda event: pipeline.cancel() if isinstance(event, WindowEmbedded) else None
            )
    assert result.outcome == "cancelled"
    assert ingest(path, source, CountingEmbedder()).outcome == "completed"
    check_integrity(path)


@pytest.mark.parametrize(
    "given",
    [{"grace": 2.1}, {"grace": 0.0}, {"merge": -1.0}, {"merge": 3.5}, {"checkpoint": 2.5}, {"deadline": 3.7}],
)
def test_budgets_that_do_not_fit(given: dict[str, float]) -> None:
    """Steps that are too long for the deadline, or for the standard, are refused when they are given."""
    with pytest.raises(QedgeError) as caught:
        StopBudget(**given)
    assert caught.value.code == 6005


# pauses


@pytest.mark.parametrize(
    ("readings", "reason"),
    [
        (Readings(memory_pressure="critical"), "memory:critical"),
        (Readings(available_memory=1), "memory:floor"),
        (Readings(thermal="critical"), "thermal:critical"),
    ],
)
def test_a_pause_suspends(tmp_path: Path, readings: Readings, reason: str) -> None:
    """Nothing is begun, the run says why, and so do the diagnostics afterwards."""
    source, embedder = _documents(tmp_path / "docs"), CountingEmbedder()
    options = IngestionOptions(throttle="machine")
    with IngestionPipeline.open(
        tmp_path / "a.db", embedder=embedder, options=options, monitor=lambda: readings
    ) as pipeline:
        result = pipeline.run(source)
    assert (result.outcome, result.suspend_reason, embedder.texts) == ("suspended", reason, [])
    with IngestionPipeline.open(tmp_path / "a.db", embedder=embedder) as pipeline:
        assert pipeline.diagnostics()["throttle_reason"] == reason
        assert pipeline.run(source).outcome == "completed"


def test_a_pause_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where that is wanted, the run goes on by itself when the reason is gone."""
    monkeypatch.setattr("qedge_dagster.pipeline.gauge._PAUSE", 0.01)
    monkeypatch.setattr("qedge_dagster.pipeline.throttle._SECONDS_BETWEEN_READINGS", 0.0)
    readings = iter([Readings(), *[Readings(memory_pressure="critical")] * 3])
    source = _documents(tmp_path / "docs")
    options = IngestionOptions(throttle="machine", when_paused="wait")
    with IngestionPipeline.open(
        tmp_path / "a.db",
        embedder=CountingEmbedder(),
        options=options,
        monitor=lambda: next(readings, Readings()),
    ) as pipeline:
        assert pipeline.run(source).outcome == "completed"
    assert next(readings, None) is None


def test_a_pause_hears_the_stop(tmp_path: Path) -> None:
    """One who waits can be stopped, and a budget goes on counting."""
    source = _documents(tmp_path / "docs")
    options = IngestionOptions(throttle="machine", when_paused="wait")
    with IngestionPipeline.open(
        tmp_path / "a.db",
        embedder=CountingEmbedder(),
        options=options,
        monitor=lambda: Readings(available_memory=0),
    ) as pipeline:
        result = pipeline.run(source, budget=IngestionBudget(max_duration=0.01))
        assert (result.outcome, result.suspend_reason) == ("suspended", "budget:duration")
        pipeline.cancel()
        assert pipeline.run(source).outcome == "cancelled"


@pytest.mark.parametrize(
    ("readings", "largest"),
    [(Readings(), 32), (Readings(memory_pressure="moderate"), 16), (Readings(low_power=True), 4)],
)
def test_smaller_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readings: Readings, largest: int) -> None:
    """The same rows from smaller windows."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    source = _documents(tmp_path / "docs", 1, 300)
    sizes: list[int] = []
    with IngestionPipeline.open(
        tmp_path / "a.db",
        embedder=CountingEmbedder(),
        options=IngestionOptions(throttle="machine"),
        monitor=lambda: readings,
    ) as pipeline:
        pipeline.run(source, on_event=lambda e: sizes.append(e.texts) if isinstance(e, WindowEmbedded) else None)
    assert max(sizes) == sizes[0] == largest
    ingest(tmp_path / "b.db", source, CountingEmbedder())
    assert contents(tmp_path / "a.db") == contents(tmp_path / "b.db")


@pytest.mark.parametrize("options", [{"throttle": "some"}, {"when_paused": "sleep"}])
def test_options_are_checked(options: dict[str, str]) -> None:
    """Words that mean nothing are refused."""
    with pytest.raises(QedgeError) as caught:
        IngestionOptions(**options)  # type: ignore[arg-type]
    assert caught.value.code == 6005
