"""Documents that are gone are removed; what could not be seen is not gone."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from qedge_dagster import FolderSource, ItemsSource, RunOptions, SourceItem
from qedge_dagster.pipeline import IngestionPipeline
from qedge_dagster.pipeline.events import PruneWithheld
from qedge_dagster.sources import UnlistedPart
from tests.pipeline.support import CountingEmbedder, check_integrity, contents, ingest, write


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", {f"{name}.txt": f"This is {name}." for name in ("a", "b", "sub/c")})


@pytest.fixture
def db(docs: Path, tmp_path: Path) -> Path:
    ingest(tmp_path / "index.db", FolderSource(docs, source_id="s"), CountingEmbedder())
    return tmp_path / "index.db"


def ids(db: Path) -> set[object]:
    return {row[2] for row in contents(db)[0]}


def test_a_missing_document_is_removed_after_a_completed_run(docs: Path, db: Path) -> None:
    """Its rows and its state go in one transaction."""
    (docs / "a.txt").unlink()
    result = ingest(db, FolderSource(docs, source_id="s"), CountingEmbedder())
    assert (result.documents_removed, result.chunks_removed) == (1, 1)
    assert [document.outcome for document in result.documents] == ["removed"]
    assert ids(db) == {"b.txt", "sub/c.txt"}
    check_integrity(db)


def test_documents_of_other_sources_stay(db: Path, tmp_path: Path) -> None:
    """A source knows nothing of another one's documents."""
    other = write(tmp_path / "other", {"x.txt": "Something else."})
    ingest(db, FolderSource(other), CountingEmbedder())
    assert ids(db) == {"a.txt", "b.txt", "sub/c.txt", "x.txt"}


def test_an_empty_source_empties_nothing_unless_told(docs: Path, db: Path) -> None:
    """An empty or unmounted root looks like "everything deleted"; only --allow-empty means it."""
    for path in sorted(docs.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    events: list[object] = []
    with IngestionPipeline.open(db, embedder=CountingEmbedder()) as pipeline:
        result = pipeline.run(FolderSource(docs, source_id="s"), on_event=events.append)
        assert (result.outcome, result.documents_removed) == ("completed", 0)
        [withheld] = [event for event in events if isinstance(event, PruneWithheld)]
        assert withheld.documents == 3
        assert any("no document" in warning for warning in result.warnings)
        assert pipeline.diagnostics(counts=True)["stale"] == 3
        result = pipeline.run(FolderSource(docs, source_id="s"), options=RunOptions(allow_empty=True))
        assert result.documents_removed == 3
        assert pipeline.diagnostics(counts=True)["stale"] == 0
    assert ids(db) == set()


def test_a_missing_root_fails_the_run_and_removes_nothing(docs: Path, db: Path) -> None:
    """6051 before any document."""
    docs.rename(docs.with_name("moved"))
    result = ingest(db, FolderSource(docs, source_id="s"), CountingEmbedder())
    assert result.outcome == "failed"
    assert result.failure is not None
    assert result.failure.code == 6051
    assert len(ids(db)) == 3


def test_an_unlisted_part_holds_the_removal_back(docs: Path, db: Path) -> None:
    """One unreadable subfolder: the rest is indexed, nothing is removed, and the result says so."""

    def partly() -> Iterator[SourceItem | UnlistedPart]:
        for item in FolderSource(docs, source_id="s").items():
            if isinstance(item, SourceItem) and item.document_id == "sub/c.txt":
                yield UnlistedPart("sub", "Permission denied")
            elif not isinstance(item, SourceItem) or item.document_id != "a.txt":
                yield item

    result = ingest(db, ItemsSource(partly, "s"), CountingEmbedder())
    assert (result.outcome, result.documents_removed) == ("completed", 0)
    assert any("sub could not be listed" in warning for warning in result.warnings)
    assert len(ids(db)) == 3


def test_a_listing_that_breaks_off_removes_nothing(docs: Path, db: Path) -> None:
    """What came before the break is indexed; the rest is unknown, not gone, and the result says so."""
    write(docs, {"a.txt": "Changed."})

    def breaking() -> Iterator[SourceItem | UnlistedPart]:
        items = FolderSource(docs, source_id="s").items()
        yield next(items)
        raise ConnectionError("the store hung up")

    result = ingest(db, ItemsSource(breaking, "s"), CountingEmbedder())
    assert (result.documents_indexed, result.documents_removed) == (1, 0)
    assert any("could not be listed: ConnectionError" in warning for warning in result.warnings)
    assert len(ids(db)) == 3


def test_a_source_that_raises_fails_the_run_and_removes_nothing(db: Path) -> None:
    """A source of the caller's own, which guards nothing, is guarded by the runner."""

    class Breaking:
        source_id = "s"

        def items(self) -> Iterator[SourceItem | UnlistedPart]:
            yield SourceItem("b.txt", "text/plain", lambda: BytesIO(b"This is b."))
            raise ConnectionError("the store hung up")

    result = ingest(db, Breaking(), CountingEmbedder())
    assert result.outcome == "failed"
    assert result.failure is not None
    assert (result.failure.code, result.documents_skipped) == (6051, 1)
    assert len(ids(db)) == 3


def test_removal_can_be_left_out(docs: Path, db: Path) -> None:
    """--no-prune keeps what is gone, and diagnostics call it stale."""
    (docs / "a.txt").unlink()
    with IngestionPipeline.open(db, embedder=CountingEmbedder()) as pipeline:
        result = pipeline.run(FolderSource(docs, source_id="s"), options=RunOptions(delete_missing=False))
        assert result.documents_removed == 0
        assert pipeline.diagnostics(counts=True)["stale"] == 1


def test_prune_reads_no_document(docs: Path, db: Path) -> None:
    """The sweep alone: full enumeration, no read, no embedding; changed documents stay as they are indexed."""
    (docs / "a.txt").unlink()
    write(docs, {"b.txt": "Changed, but not read."})
    embedder = CountingEmbedder()
    with IngestionPipeline.open(db, embedder=embedder) as pipeline:
        result = pipeline.prune(FolderSource(docs, source_id="s"))
    assert (result.outcome, result.documents_removed, embedder.texts) == ("completed", 1, [])
    assert ids(db) == {"b.txt", "sub/c.txt"}


def test_remove_takes_documents_by_name(docs: Path, db: Path) -> None:
    """Whether the source still holds them or not; an unknown name is no error."""
    with IngestionPipeline.open(db, embedder=CountingEmbedder()) as pipeline:
        result = pipeline.remove("s", ["a.txt", "never was"])
    assert [document.document_id for document in result.documents] == ["a.txt"]
    assert ids(db) == {"b.txt", "sub/c.txt"}
    assert ingest(db, FolderSource(docs, source_id="s"), CountingEmbedder()).documents_indexed == 1
