"""A change of model is prepared beside the old collection and switched at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from qedge_dagster import Collection, FolderSource, IngestionBudget, QedgeError, RunOptions
from tests.pipeline.support import CountingEmbedder, check_integrity, contents, ingest, prose, write

_REBUILD = RunOptions(rebuild=True)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", {f"{number}.txt": "\n\n".join(prose(number, 8)) for number in range(6)})


def answers(db: Path, embedder: CountingEmbedder) -> list[tuple[str, float]]:
    with Collection.open(db, embedder=embedder) as collection:
        return [(hit.chunk.key, round(hit.score, 6)) for hit in collection.search("kide mulo", top=5)]


@pytest.mark.parametrize("dimensions", [8, 12], ids=["same dimension", "other dimension"])
def test_the_old_model_answers_until_the_last_part_is_ready(docs: Path, tmp_path: Path, dimensions: int) -> None:
    """Three budgeted parts: the old answers until the switch, after it the rows of a fresh collection."""
    db, old, new = tmp_path / "index.db", CountingEmbedder("old"), CountingEmbedder("new", dimensions=dimensions)
    ingest(db, FolderSource(docs), old)
    before = answers(db, old)
    parts = []
    for _ in range(3):
        assert answers(db, old) == before
        with pytest.raises(QedgeError) as error:
            answers(db, new)
        assert error.value.code in (6006, 6012)
        parts.append(
            ingest(db, FolderSource(docs), new, run=RunOptions(rebuild=True, budget=IngestionBudget(max_documents=2)))
        )
    assert [part.outcome for part in parts] == ["suspended", "suspended", "completed"]
    assert {part.collection for part in parts} == {"chunks"}
    fresh, embedder = tmp_path / "fresh.db", CountingEmbedder("new", dimensions=dimensions)
    ingest(fresh, FolderSource(docs), embedder)
    assert contents(db) == contents(fresh)
    assert sorted(new.texts) == sorted(embedder.texts)
    assert answers(db, new) == answers(fresh, embedder)
    check_integrity(db)
    with pytest.raises(QedgeError) as error:
        answers(db, old)
    assert error.value.code == 6012


def test_edits_during_a_rebuild_are_in_it(docs: Path, tmp_path: Path) -> None:
    """Ordinary runs with the old model go on meanwhile; the rebuild takes in what changed."""
    db, old, new = tmp_path / "index.db", CountingEmbedder("old"), CountingEmbedder("new")
    ingest(db, FolderSource(docs), old)
    ingest(db, FolderSource(docs), new, run=RunOptions(rebuild=True, budget=IngestionBudget(max_documents=4)))
    write(docs, {"0.txt": "rewritten", "7.txt": "added"})
    (docs / "1.txt").unlink()
    assert ingest(db, FolderSource(docs), old).documents_removed == 1
    assert ingest(db, FolderSource(docs), new, run=_REBUILD).outcome == "completed"
    ingest(tmp_path / "fresh.db", FolderSource(docs), CountingEmbedder("new"))
    assert contents(db) == contents(tmp_path / "fresh.db")


def test_the_switch_waits_for_every_source(docs: Path, tmp_path: Path) -> None:
    """A collection of two sources keeps the old model until both are rebuilt."""
    other = write(tmp_path / "other", {"x.txt": "\n\n".join(prose(50, 5))})
    db, old, new = tmp_path / "index.db", CountingEmbedder("old"), CountingEmbedder("new")
    ingest(db, FolderSource(docs), old)
    ingest(db, FolderSource(other), old)
    before = answers(db, old)
    first = ingest(db, FolderSource(docs), new, run=_REBUILD)
    assert first.outcome == "completed"
    assert any(str(other) in warning for warning in first.warnings)
    assert answers(db, old) == before
    ingest(db, FolderSource(other), new, run=_REBUILD)
    assert answers(db, new)
    check_integrity(db)


def test_going_back_to_the_old_model_gives_the_rebuild_up(docs: Path, tmp_path: Path) -> None:
    """A rebuild to the model that the collection has is an ordinary run, and drops what was prepared."""
    db, old = tmp_path / "index.db", CountingEmbedder("old")
    ingest(db, FolderSource(docs), old)
    before = contents(db)
    ingest(
        db,
        FolderSource(docs),
        CountingEmbedder("new"),
        run=RunOptions(rebuild=True, budget=IngestionBudget(max_documents=2)),
    )
    result = ingest(db, FolderSource(docs), old, run=_REBUILD)
    assert (result.outcome, result.documents_skipped) == ("completed", 6)
    assert contents(db) == before


def test_a_third_model_starts_the_rebuild_anew(docs: Path, tmp_path: Path) -> None:
    """What was prepared for another model is never taken over."""
    db = tmp_path / "index.db"
    ingest(db, FolderSource(docs), CountingEmbedder("old"))
    ingest(
        db,
        FolderSource(docs),
        CountingEmbedder("b"),
        run=RunOptions(rebuild=True, budget=IngestionBudget(max_documents=3)),
    )
    ingest(db, FolderSource(docs), CountingEmbedder("c"), run=_REBUILD)
    ingest(tmp_path / "fresh.db", FolderSource(docs), CountingEmbedder("c"))
    assert contents(db) == contents(tmp_path / "fresh.db")
