"""Documents that are extracted while another one is embedded: sooner, and otherwise as if they were not."""

from __future__ import annotations

import io
import os
import select
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qedge_dagster import FolderSource, IngestionBudget, IngestionPipeline, ItemsSource, RunOptions
from qedge_dagster.chunking.base import ChunkingOptions
from qedge_dagster.documents import media_type_for
from qedge_dagster.embedding.base import EmbeddingBatch
from qedge_dagster.extractors import isolation
from qedge_dagster.pipeline import IngestionOptions
from qedge_dagster.pipeline.events import (
    DocumentFailed,
    DocumentIndexed,
    DocumentSkipped,
    Event,
    RunFinished,
    RunStarted,
)
from qedge_dagster.sources.base import Source, SourceItem, UnlistedPart
from qedge_dagster.sources.selected import SelectedDocuments
from tests.extractors.isolated import Misbehaving
from tests.pipeline.support import CountingEmbedder, contents, write
from tests.pipeline.test_isolation import children

# How long a test waits for what never comes if the code is wrong.
_NEVER = 60


def opened(database: Path, *, embedder: CountingEmbedder | None = None, ahead: int = 2, **given) -> IngestionPipeline:
    """A pipeline with the misbehaving extractor, that extracts so many documents ahead."""
    pipeline = IngestionPipeline.open(
        database, embedder=embedder or CountingEmbedder(), extractors=[Misbehaving()], **given
    )
    pipeline.stages = replace(pipeline.stages, documents_ahead=ahead)
    return pipeline


class Signal:
    """A FIFO into which the extraction of a document writes."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def wait(self) -> None:
        readable, _, _ = select.select([self._end], [], [], _NEVER)
        assert readable, "the extraction did not begin"
        os.read(self._end, 1)


class Hooked(CountingEmbedder):
    """Calls `hook` when the text that contains `word` is to be embedded."""

    def __init__(self, word: str, hook: Callable[[], None]) -> None:
        super().__init__()
        self._word = word
        self._hook = hook

    def embed_documents(self, texts: Sequence[str]) -> EmbeddingBatch:
        if any(self._word in text for text in texts):
            self._hook()
        return super().embed_documents(texts)


@pytest.fixture
def signal(tmp_path: Path) -> Signal:
    return Signal(tmp_path / "fifo")


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """No process and no thread more than before."""
    processes, threads = children(), threading.active_count()
    yield
    assert (children(), threading.active_count()) == (processes, threads)


@pytest.mark.parametrize(
    "names", [["a.txt", "b.bad"], ["a.bad", "b.bad"], ["a.txt", "b.md", "c.txt", "d.bad"]], ids=str
)
@pytest.mark.usefixtures("nothing_left")
def test_the_next_is_extracted_while_this_one_is_embedded(tmp_path: Path, signal: Signal, names: list[str]) -> None:
    """The embedder does not go on with the first document before the extraction of the last has begun."""
    write(tmp_path / "docs", {name: f"text of {name}" for name in names[:-1]})
    write(tmp_path / "docs", {names[-1]: f"signal {signal.path}"})
    with opened(tmp_path / "a.db", embedder=Hooked(names[0], signal.wait)) as pipeline:
        result = pipeline.run(FolderSource(tmp_path / "docs"))
    assert (result.outcome, [d.document_id for d in result.documents]) == ("completed", names)
    assert result.documents_indexed == len(names)


@pytest.mark.parametrize("stop", ["request_stop", "cancel"])
@pytest.mark.usefixtures("nothing_left")
def test_a_stop_while_one_is_extracted_ahead(tmp_path: Path, signal: Signal, stop: str) -> None:
    """The document in turn is finished, the one ahead is given up and not recorded, and the next run begins there."""
    docs = write(tmp_path / "docs", {"a.txt": "first", "b.bad": f"signal {signal.path} sleep", "c.txt": "last"})

    def stopped() -> None:
        signal.wait()
        getattr(pipeline, stop)()

    with opened(tmp_path / "a.db", embedder=Hooked("first", stopped)) as pipeline:
        result = pipeline.run(FolderSource(docs))
    assert result.outcome in ("suspended", "cancelled")
    assert [(d.document_id, d.outcome) for d in result.documents] == [("a.txt", "indexed")]
    write(docs, {"b.bad": "mended"})
    with opened(tmp_path / "a.db") as pipeline:
        assert [d.document_id for d in pipeline.run(FolderSource(docs)).documents] == ["b.bad", "c.txt"]


@pytest.mark.usefixtures("nothing_left")
def test_a_stop_while_one_is_extracted_in_its_turn(tmp_path: Path, signal: Signal) -> None:
    """The run does not wait for the extraction's limit of time, and the document has not failed."""
    docs = write(tmp_path / "docs", {"b.bad": f"signal {signal.path} sleep"})
    with opened(tmp_path / "a.db", options=IngestionOptions(extraction_seconds=2.0 * _NEVER)) as pipeline:

        def stopped() -> None:
            signal.wait()
            pipeline.request_stop()

        thread = threading.Thread(target=stopped)
        thread.start()
        result = pipeline.run(FolderSource(docs))
        thread.join()
    assert (result.outcome, result.suspend_reason, result.documents) == ("suspended", "caller:stop", ())


@pytest.mark.usefixtures("nothing_left")
def test_a_consumer_that_stops_while_one_is_extracted_ahead(tmp_path: Path, signal: Signal) -> None:
    """Closing the generator ends the process that extracts."""
    docs = write(tmp_path / "docs", {"a.txt": "first", "b.bad": f"signal {signal.path} sleep"})
    with opened(tmp_path / "a.db", embedder=Hooked("first", signal.wait)) as pipeline:
        events = pipeline.events(FolderSource(docs), RunOptions())
        while not isinstance(next(events), DocumentIndexed):
            pass
        events.close()
        assert pipeline.diagnostics()["last_run_outcome"] == "cancelled"
        write(docs, {"b.bad": "mended"})
        assert pipeline.run(FolderSource(docs)).documents_indexed == 1


def test_a_file_that_changes_after_it_was_read_ahead(tmp_path: Path, signal: Signal) -> None:
    """What was read is indexed as it was, and the next run has the change."""
    docs = write(tmp_path / "docs", {"a.txt": "first", "b.bad": f"signal {signal.path}"})

    def change() -> None:
        signal.wait()
        write(docs, {"b.bad": "changed"})

    texts: list[list[str]] = []
    with opened(tmp_path / "a.db", embedder=Hooked("first", change)) as pipeline:
        for _ in range(2):
            assert pipeline.run(FolderSource(docs)).documents_failed == 0
            texts.append([str(row[4]) for row in contents(tmp_path / "a.db")[0] if row[2] == "b.bad"])
    assert texts == [[f"signal {signal.path}"], ["changed"]]


def test_a_file_that_changes_between_its_reads_ahead(tmp_path: Path) -> None:
    """It is read again in its turn: the newer state is indexed."""
    reads = iter([b"one", b"two and more", b"two and more", b"two and more"])
    items = [
        SourceItem("a.txt", "text/plain", lambda: io.BytesIO(b"first")),
        SourceItem("b.bad", "application/x-bad", lambda: io.BytesIO(next(reads))),
    ]
    with opened(tmp_path / "a.db") as pipeline:
        assert pipeline.run(ItemsSource(items, "s")).documents_indexed == 2
    assert "two and more" in [row[4] for row in contents(tmp_path / "a.db")[0]]
    assert list(reads) == []


def test_a_long_text_stays_with_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken when its turn comes, and the rows are the same."""
    files = {f"{number}.{'bad' if number % 2 else 'txt'}": f"text {number}" for number in range(8)}
    docs = write(tmp_path / "docs", files)
    for database, kept in (("a.db", isolation._KEPT_UNASKED), ("b.db", 0)):
        monkeypatch.setattr(isolation, "_KEPT_UNASKED", kept)
        with opened(tmp_path / database) as pipeline:
            assert pipeline.run(FolderSource(docs, source_id="s")).documents_indexed == 8
    assert contents(tmp_path / "a.db") == contents(tmp_path / "b.db")


@dataclass
class Listed:
    """A source of the given entries: items by name and text, parts that cannot be listed, or its own breakdown. Counts
    the reads, and knows by which threads they were made."""

    entries: list[tuple[str, str]]
    source_id: str = "s"

    def __post_init__(self) -> None:
        self.reads: Counter[str] = Counter()
        self.threads: set[int] = set()

    def items(self) -> Iterator[SourceItem | UnlistedPart]:
        for name, text in self.entries:
            if name == "unlisted":
                yield UnlistedPart(text, "as told")
            elif name == "breaks":
                raise OSError(5, "as told")
            else:
                media_type = "application/x-bad" if name.endswith(".bad") else media_type_for(name)
                yield SourceItem(name, media_type, self._open(name, text), None, len(text), text)

    def _open(self, name: str, text: str) -> Callable[[], BinaryIO]:
        def opened() -> BinaryIO:
            self.reads[name] += 1
            self.threads.add(threading.get_ident())
            if text == "vanished":
                raise FileNotFoundError(2, "No such file")
            return io.BytesIO(text.encode())

        return opened


def said(events: list[Event]) -> list[tuple[type, dict[str, Any]]]:
    """The events without what differs from run to run."""
    fleeting = {"run_id": "", "duration_seconds": 0.0}
    kept: list[tuple[type, dict[str, Any]]] = []
    for event in events:
        if isinstance(event, RunStarted):
            continue
        facts = asdict(event)
        facts.pop("seconds", None)
        for result in (facts.get("result"), *(facts["result"]["documents"] if isinstance(event, RunFinished) else ())):
            if result:
                result |= {name: value for name, value in fleeting.items() if name in result}
        kept.append((type(event), facts))
    return kept


def reached(events: list[tuple[type, dict[str, Any]]]) -> set[str]:
    """The documents that the run has come to an end with; one that is listed again (6054) is not read for it."""
    results = [facts["result"] for kind, facts in events if kind in (DocumentIndexed, DocumentFailed)]
    taken = {result["document_id"] for result in results if (result["failure"] or {}).get("code") != 6054}
    return taken | {facts["document_id"] for kind, facts in events if kind is DocumentSkipped}


_NAMES = st.sampled_from([f"{letter}.{kind}" for letter in "abcdef" for kind in ("txt", "bad", "bad", "bin")])
_TEXTS = st.sampled_from(
    ["text", "other", "longer " * 400, "6103", "6104", "6105", "raise", "exit", "part", "vanished"]
)
_ENTRIES = st.lists(
    st.tuples(_NAMES, _TEXTS) | st.sampled_from([("unlisted", "somewhere"), ("breaks", "")]), min_size=3, max_size=12
)


@given(
    st.lists(_ENTRIES, min_size=1, max_size=3),
    st.sampled_from([None, 1, 2]),
    st.builds(RunOptions, force=st.booleans(), trust_timestamps=st.booleans()),
)
@settings(max_examples=12)
def test_nothing_else_is_different(states: list[list[tuple[str, str]]], most: int | None, run: RunOptions) -> None:
    """Over random mixes of formats, failures, duplicates, broken listings, budgets, and edits: the same events and rows
    with and without, the same reads of what was reached, by the same thread, and two documents at most read in vain."""
    run = replace(run, budget=IngestionBudget(max_documents=most))
    said_by: dict[int, list[list[tuple[type, dict[str, Any]]]]] = {}
    reads_by: dict[int, list[Counter[str]]] = {}
    held_by: dict[int, object] = {}
    for ahead in (0, 2):
        with TemporaryDirectory() as folder, opened(Path(folder) / "a.db", ahead=ahead) as pipeline:
            runs, reads = said_by.setdefault(ahead, []), reads_by.setdefault(ahead, [])
            for entries in states:
                source = Listed(entries)
                for _ in range(3):
                    events: list[Event] = []
                    pipeline.run(source, options=run, on_event=events.append)
                    runs.append(said(events))
                    reads.append(Counter(source.reads))
                    source.reads.clear()
                assert source.threads <= {threading.get_ident()}
            held_by[ahead] = contents(Path(folder) / "a.db")
    assert said_by[2] == said_by[0]
    assert held_by[2] == held_by[0]
    vanished = {name for entries in states for name, text in entries if text == "vanished"}  # tried again in its turn
    for plain, ahead, events in zip(reads_by[0], reads_by[2], said_by[2], strict=True):
        more, taken = (ahead - plain).keys(), reached(events)
        assert not plain - ahead
        assert len(more - taken) <= 2
        assert all(ahead[name] <= 2 for name in more - taken)
        assert more & taken <= vanished


def test_reads_are_counted(tmp_path: Path) -> None:
    """One for an unchanged document, two for a changed one, whether ahead or not; and none on trusted time stamps."""
    source = Listed([("a.txt", "first"), *((f"{letter}.bad", "text") for letter in "bcdef"), ("g.bad", "6104")])
    with opened(tmp_path / "a.db") as pipeline:
        pipeline.run(source)
        assert source.reads == {name: 2 for name, _ in source.entries}
        source.reads.clear()
        source.entries[0], source.entries[3] = ("a.txt", "changed"), ("d.bad", "changed")
        pipeline.run(source)
        assert source.reads == {name: 2 if text == "changed" else 1 for name, text in source.entries}
        source.reads.clear()
        source.entries[0] = ("a.txt", "changed again")
        pipeline.run(source, options=RunOptions(trust_timestamps=True))
        assert source.reads == {"a.txt": 2}


def test_what_artefacts_spare_is_not_extracted_ahead(tmp_path: Path) -> None:
    """Another chunk size needs one read of each document, and no extraction."""
    source = Listed([(f"{letter}.bad", "longer " * 400) for letter in "abcd"])
    with opened(tmp_path / "a.db", artifacts=tmp_path / "files") as pipeline:
        pipeline.run(source)
    source.reads.clear()
    options = IngestionOptions(chunking=ChunkingOptions(max_tokens=100))
    with opened(tmp_path / "a.db", artifacts=tmp_path / "files", options=options) as pipeline:
        assert pipeline.run(source).documents_indexed == 4
    assert source.reads == dict.fromkeys((name for name, _ in source.entries), 1)


def test_chosen_documents(tmp_path: Path) -> None:
    """Those alone are read, ahead or not."""
    source = Listed([(f"{letter}.bad", "text") for letter in "abcdefgh"])
    chosen: Source = SelectedDocuments(source, ["b.bad", "c.bad", "g.bad"])
    with opened(tmp_path / "a.db") as pipeline:
        assert pipeline.run(chosen).documents_indexed == 3
    assert source.reads == {"b.bad": 2, "c.bad": 2, "g.bad": 2}


def test_nothing_is_asked_for_early_without_such_formats(tmp_path: Path) -> None:
    """Where every extractor works in this process, an item is listed when the one before it is done."""
    done: list[str] = []

    def items() -> Iterator[SourceItem]:
        for number in range(4):
            assert len(done) == number
            yield SourceItem(f"{number}.txt", "text/plain", lambda: io.BytesIO(b"text"))

    def on_event(event: Event) -> None:
        if isinstance(event, DocumentIndexed):
            done.append(event.result.document_id)

    with IngestionPipeline.open(tmp_path / "a.db", embedder=CountingEmbedder()) as pipeline:
        registry = type(pipeline.stages.registry)(e for e in pipeline.stages.registry if e.id == "text")
        pipeline.stages = replace(pipeline.stages, registry=registry)
        result = pipeline.run(ItemsSource(items, "s"), on_event=on_event)
    assert (result.outcome, len(done)) == ("completed", 4)
