"""Runs over chosen documents of a source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qedge_dagster.errors import QedgeError
from qedge_dagster.pipeline.options import IngestionBudget, RunOptions
from qedge_dagster.pipeline.pipeline import IngestionPipeline
from qedge_dagster.sources import FolderSource, ItemsSource
from qedge_dagster.sources.base import SourceItem, UnlistedPart
from qedge_dagster.sources.selected import SelectedDocuments
from tests.pipeline.support import CountingEmbedder, check_integrity, ingest, write


@pytest.fixture
def folder(tmp_path: Path) -> FolderSource:
    return FolderSource(write(tmp_path / "docs", {f"{name}.txt": f"text of {name}" for name in "abcd"}), source_id="s")


def test_only_chosen_documents_are_taken(tmp_path: Path, folder: FolderSource) -> None:
    """Documents that were not chosen are neither indexed nor counted as gone, and keep their rows."""
    database, embedder = tmp_path / "t.db", CountingEmbedder()
    ingest(database, folder, embedder)
    for name in "abcd":
        write(Path(folder.path), {f"{name}.txt": f"new text of {name}"})
    result = ingest(database, SelectedDocuments(folder, ["b.txt", "d.txt"]), embedder)
    assert (result.outcome, result.documents_seen, result.documents_indexed, result.documents_removed) == (
        "completed",
        2,
        2,
        0,
    )
    with IngestionPipeline.open(database, embedder=embedder) as pipeline:
        facts = pipeline.diagnostics(counts=True)
    assert (facts["documents"], facts["stale"]) == (4, 0)
    check_integrity(database)


def test_chosen_documents_that_are_gone_are_removed(tmp_path: Path, folder: FolderSource) -> None:
    """A chosen document that the source no longer holds loses its rows; one that was not chosen keeps them."""
    database, embedder = tmp_path / "t.db", CountingEmbedder()
    ingest(database, folder, embedder)
    (Path(folder.path) / "a.txt").unlink()
    (Path(folder.path) / "b.txt").unlink()
    result = ingest(database, SelectedDocuments(folder, ["a.txt", "c.txt", "never.txt"]), embedder)
    assert [(d.document_id, d.outcome) for d in result.documents] == [("a.txt", "removed")]
    assert result.warnings == ("never.txt: neither in the source nor in the collection",)
    with IngestionPipeline.open(database, embedder=embedder) as pipeline:
        assert pipeline.diagnostics(counts=True)["documents"] == 3


@pytest.mark.parametrize("listing", [[], [UnlistedPart("sub/", "Permission denied")]])
def test_a_doubtful_listing_removes_nothing(tmp_path: Path, folder: FolderSource, listing: list[UnlistedPart]) -> None:
    """Chosen documents are not taken for gone when nothing came at all, or a part could not be listed."""
    database, embedder = tmp_path / "t.db", CountingEmbedder()
    ingest(database, folder, embedder)
    result = ingest(database, SelectedDocuments(ItemsSource(listing, "s"), ["a.txt"]), embedder)
    assert (result.outcome, result.documents_removed) == ("completed", 0)
    assert [warning for warning in result.warnings if "1 documents that were not seen are kept" in warning]


def test_the_listing_ends_with_the_last_chosen_document() -> None:
    """What comes after the last chosen document is not enumerated."""
    listed: list[str] = []

    def items() -> Iterator[SourceItem]:
        for name in "abcd":
            listed.append(name)
            yield SourceItem(name, "text/plain", lambda: None)  # type: ignore[arg-type, return-value]

    assert [item.document_id for item in SelectedDocuments(ItemsSource(items, "s"), ["b"]).items()] == ["b"]  # type: ignore[union-attr]
    assert listed == ["a", "b"]


def test_a_selected_run_leaves_the_resume_position_alone(tmp_path: Path, folder: FolderSource) -> None:
    """A run over everything goes on where it was suspended, whatever selected runs did in between."""
    database, embedder = tmp_path / "t.db", CountingEmbedder()
    ingest(database, folder, embedder, budget=IngestionBudget(max_documents=2))
    write(Path(folder.path), {"a.txt": "another text"})
    ingest(database, SelectedDocuments(folder, ["a.txt"]), embedder, budget=IngestionBudget(max_documents=1))
    result = ingest(database, folder, embedder, budget=IngestionBudget(max_documents=1))
    assert [d.document_id for d in result.documents] == ["c.txt"]


def test_a_rebuild_of_selected_documents_is_refused(tmp_path: Path, folder: FolderSource) -> None:
    """6005: a rebuild that skipped documents would lose them in the switch."""
    with pytest.raises(QedgeError) as caught:
        ingest(
            tmp_path / "t.db", SelectedDocuments(folder, ["a.txt"]), CountingEmbedder(), run=RunOptions(rebuild=True)
        )
    assert caught.value.code == 6005
