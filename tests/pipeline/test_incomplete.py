"""Documents that could be read in part: what was read is found, and the document has failed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from qedge_dagster import FolderSource, IngestionBudget, IngestionPipeline, RunOptions
from qedge_dagster.artifacts.files import ArtifactFolder
from qedge_dagster.chunking.base import ChunkingOptions
from qedge_dagster.collection.connection import Database
from qedge_dagster.extractors import ExtractionContext
from qedge_dagster.extractors.isolation import ExtractionLimits, ExtractionProcess, isolate
from qedge_dagster.extractors.pdf import PdfExtractor
from qedge_dagster.pipeline import IngestionOptions
from qedge_dagster.pipeline.events import DocumentFailed, DocumentIndexed, Event
from qedge_dagster.pipeline.results import RunResult
from qedge_dagster.state import DocumentRow, StateStore
from tests.extractors.isolated import Misbehaving
from tests.extractors.pdf.builder import build, pages
from tests.extractors.support import item
from tests.pipeline.support import CountingEmbedder, check_integrity, prose, write

_TOO_SLOW = 100.0

# Each page is more than a chunk, and no two say the same.
_PAGES = [
    f"The page of {word}. {' '.join(prose(seed, 6))}"
    for seed, word in enumerate(("apples", "pears", "plums", "figs", "dates"))
]


def page(text: str) -> str:
    """The content of a page."""
    lines = " ".join(f"({line}) Tj T*" for line in textwrap.wrap(text, 80))
    return f"BT /F1 10 Tf 12 TL 72 720 Td {lines} ET"


@dataclass
class Paging:
    """Pages of text as PDF files, read by the real extractor under a clock that stands still but for one page."""

    root: Path
    slow: list[int] = field(default_factory=list[int])
    events: list[Event] = field(default_factory=list[Event])

    def __post_init__(self) -> None:
        self.embedder = CountingEmbedder()
        self.database = self.root / "a.db"

    def write(self, texts: Sequence[str]) -> None:
        write(self.root / "docs", {"a.pdf": build(pages(list(map(page, texts))))})

    def run(self, slow: int | None = None, *, run: RunOptions | None = None, **given) -> RunResult:
        """One run in which page `slow` takes too long."""
        extractor = _InProcess(PdfExtractor(clock=self._clock(slow)))
        with IngestionPipeline.open(
            self.database, embedder=given.pop("embedder", self.embedder), extractors=[extractor], **given
        ) as pipeline:
            self.events.clear()
            source = FolderSource(self.root / "docs", source_id="s")
            result = pipeline.run(source, options=run, on_event=self.events.append)
        check_integrity(self.database)
        return result

    def texts(self) -> list[str]:
        with closing(Database(self.database, read_only=True)) as opened:
            return [str(row[0]) for row in opened.connection.execute("SELECT text FROM chunks ORDER BY ordinal")]

    def row(self) -> DocumentRow:
        with closing(Database(self.database, read_only=True)) as opened:
            row = StateStore(opened, "chunks").document("s", "a.pdf")
        assert row is not None
        return row

    @staticmethod
    def _clock(slow: int | None):
        def seconds() -> Iterator[float]:
            now = 0.0
            for page in range(1000):  # asked before the first page, and after each
                now += _TOO_SLOW if page == slow else 0.0
                yield now

        return seconds().__next__


class _InProcess:
    """The extractor without `isolated`: a clock cannot be sent to another process."""

    def __init__(self, extractor: PdfExtractor) -> None:
        self.id, self.version, self.variant = extractor.id, extractor.version, extractor.variant
        self.extensions, self.media_types = extractor.extensions, extractor.media_types
        self.can_extract, self.extract = extractor.can_extract, extractor.extract


@pytest.fixture
def paging(tmp_path: Path) -> Paging:
    made = Paging(tmp_path)
    made.write(_PAGES)
    return made


_READ = ("apples", "pears", "plums")


def named(texts: Sequence[str]) -> list[str]:
    whole = " ".join(texts)
    return [word for word in ("apples", "pears", "plums", "figs", "dates", "limes") if word in whole]


def test_what_was_read_is_found(paging: Paging) -> None:
    """The pages up to the slow one are indexed, the document has failed with 6107, which names the page and how many
    there are, and its result counts the chunks; all is found."""
    result = paging.run(slow=3)
    [document] = result.documents
    assert (result.outcome, result.documents_failed, result.documents_indexed) == ("completed", 1, 0)
    assert (document.outcome, document.chunks_added) == ("failed", len(paging.texts()))
    assert document.chunks_added == result.chunks_added == result.texts_embedded > 1
    assert document.failure is not None
    assert document.failure.code == 6107
    assert "page 3 of 5" in document.failure.message
    [event] = [event for event in paging.events if isinstance(event, DocumentFailed)]
    assert event.result == document
    assert named(paging.texts()) == list(_READ)
    assert (paging.row().status, paging.row().content_hash) == ("failed", None)
    with IngestionPipeline.open(paging.database, embedder=paging.embedder) as pipeline:
        assert pipeline.collection.keyword_search("plums")
        assert not pipeline.collection.keyword_search("figs")
        assert pipeline.counts()["failed"] == 1


def test_the_next_run_tries_again(paging: Paging) -> None:
    """It embeds nothing for the pages it had, whether it comes to the end or not; then the document is whole."""
    paging.run(slow=3)
    again = paging.run(slow=3)
    assert (again.documents_failed, again.texts_embedded, again.chunks_added, again.chunks_removed) == (1, 0, 0, 0)
    whole = paging.run()
    assert (whole.documents_indexed, whole.documents_failed) == (1, 0)
    assert named(paging.texts()) == ["apples", "pears", "plums", "figs", "dates"]
    assert len(paging.embedder.texts) == len(set(paging.embedder.texts))
    [event] = [event for event in paging.events if isinstance(event, DocumentIndexed)]
    assert event.before is None  # no stage was said to be made of it before
    assert paging.run().documents_skipped == 1


def test_the_part_that_reaches_further_is_kept(paging: Paging) -> None:
    """A machine that is busier than the last time takes no page away; one that is less so adds to them."""
    paging.run(slow=2)
    assert named(paging.texts()) == ["apples", "pears"]
    paging.run(slow=4)
    assert named(paging.texts()) == ["apples", "pears", "plums", "figs"]
    assert paging.run(slow=1).chunks_removed == 0
    assert named(paging.texts()) == ["apples", "pears", "plums", "figs"]
    failure = paging.row().error
    assert failure is not None
    assert "page 1 of 5" in failure


def test_a_part_of_another_state_takes_the_place_of_a_part(paging: Paging) -> None:
    """Where it reaches as far, so that an edit is found although the document never comes to its end."""
    paging.run(slow=3)
    paging.write([*_PAGES[:2], _PAGES[2].replace("plums", "limes"), *_PAGES[3:]])
    paging.run(slow=3)
    assert named(paging.texts()) == ["apples", "pears", "limes"]


def test_a_whole_document_is_not_replaced_by_a_part(paging: Paging, tmp_path: Path) -> None:
    """Its rows and its artefacts stay as they are, and are stale, until the new state can be read to its end."""
    artifacts = tmp_path / "files"
    paging.run(artifacts=artifacts)
    before, files = paging.texts(), sorted(artifacts.rglob("*.parquet"))
    paging.write(["limes first", *_PAGES])
    result = paging.run(slow=5, artifacts=artifacts)
    assert (result.documents_failed, result.chunks_added, result.chunks_removed) == (1, 0, 0)
    assert (paging.texts(), sorted(artifacts.rglob("*.parquet"))) == (before, files)
    with IngestionPipeline.open(paging.database, embedder=paging.embedder) as pipeline:
        assert pipeline.counts()["stale"] == 1
    assert paging.run(artifacts=artifacts).documents_indexed == 1
    assert "limes" in named(paging.texts())


def test_artefacts_are_of_whole_documents(paging: Paging, tmp_path: Path) -> None:
    """A part has none, so that no later run takes it for the whole; the whole has them."""
    artifacts = tmp_path / "files"
    paging.run(slow=3, artifacts=artifacts)
    assert list(artifacts.rglob("*.parquet")) == []
    options = IngestionOptions(chunking=ChunkingOptions(max_tokens=100))
    paging.run(slow=4, artifacts=artifacts, options=options)
    assert named(paging.texts()) == ["apples", "pears", "plums", "figs"]
    paging.run(artifacts=artifacts, options=options)
    with closing(Database(paging.database, read_only=True)) as opened:
        versions = StateStore(opened, "chunks").versions("s", "a.pdf")
    assert versions is not None
    paths = ArtifactFolder(artifacts, "chunks").paths("s", "a.pdf", versions)
    assert sorted(artifacts.rglob("*.parquet")) == sorted(map(Path, paths.values()))


def test_a_budget_in_the_middle_of_a_part(paging: Paging) -> None:
    """It is suspended like any other; together the runs embed what one would have."""
    options = IngestionOptions(write_batch_size=1)
    for _ in range(50):
        result = paging.run(slow=3, options=options, run=RunOptions(budget=IngestionBudget(max_chunks=2)))
        if result.outcome == "completed":
            break
        assert result.suspend_reason == "budget:chunks"
    assert (result.outcome, named(paging.texts())) == ("completed", list(_READ))
    assert sorted(paging.embedder.texts) == sorted(set(paging.embedder.texts))


def test_fail_fast_has_the_part(paging: Paging) -> None:
    """The run fails with 6107 after the part is indexed."""
    result = paging.run(slow=3, run=RunOptions(fail_fast=True))
    assert result.failure is not None
    assert (result.outcome, result.failure.code) == ("failed", 6107)
    assert named(paging.texts()) == list(_READ)


def test_a_rebuild_does_not_lose_pages(paging: Paging) -> None:
    """While a document that was whole could be rebuilt in part only, the old model goes on answering."""
    paging.run()
    result = paging.run(slow=2, run=RunOptions(rebuild=True), embedder=CountingEmbedder("model-b"))
    assert any("would be lost" in warning for warning in result.warnings)
    assert named(paging.texts()) == ["apples", "pears", "plums", "figs", "dates"]
    assert paging.run(run=RunOptions(rebuild=True), embedder=CountingEmbedder("model-b")).warnings == ()
    assert paging.run(embedder=CountingEmbedder("model-b")).documents_skipped == 1


def test_a_part_is_no_obstacle_to_a_rebuild(paging: Paging) -> None:
    """A document that never comes to its end is rebuilt as far as it goes."""
    paging.run(slow=3)
    result = paging.run(slow=3, run=RunOptions(rebuild=True), embedder=CountingEmbedder("model-b"))
    assert (result.outcome, result.warnings) == ("completed", ())
    assert named(paging.texts()) == list(_READ)


def test_a_part_without_text_is_not_settled(paging: Paging) -> None:
    """Empty pages up to the slow one are not a document without a text layer: later pages may have some."""
    paging.write(["", *_PAGES])
    result = paging.run(slow=1)
    [document] = result.documents
    assert document.failure is not None
    assert (document.failure.code, paging.row().content_hash, paging.texts()) == (6107, None, [])
    assert paging.run().documents_indexed == 1


def test_through_the_process_and_without(tmp_path: Path) -> None:
    """The part, its reason and its remedy come back from the process as they are without it, and are indexed."""
    given = item(b"part of it", "a.bad", "application/x-bad")
    with closing(ExtractionProcess(ExtractionLimits(10.0, 1 << 28))) as process:
        there = isolate(Misbehaving(), process).extract(given, ExtractionContext())
    here = Misbehaving().extract(given, ExtractionContext())
    assert there == here
    assert there.incomplete is not None
    write(tmp_path / "docs", {"a.bad": "part " + "\n\n".join(prose(1, 20))})
    with IngestionPipeline.open(tmp_path / "a.db", embedder=CountingEmbedder(), extractors=[Misbehaving()]) as pipeline:
        result = pipeline.run(FolderSource(tmp_path / "docs"))
    assert (result.documents_failed, result.chunks_added > 5) == (1, True)
    check_integrity(tmp_path / "a.db")
