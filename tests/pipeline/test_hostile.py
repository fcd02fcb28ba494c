"""What a hostile reader found: each fault is a kind, and stays fixed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from qedge_dagster import FilesSource, FolderSource, IngestionBudget, ItemsSource, QedgeError, RunOptions, SourceItem
from qedge_dagster.pipeline import IngestionPipeline
from qedge_dagster.sources import UnlistedPart
from tests.pipeline.support import CountingEmbedder, check_integrity, contents, ingest, prose, write

_BAD = b"\x7fELF" + bytes(9999)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", {f"{name}.txt": "\n\n".join(prose(seed, 6)) for seed, name in enumerate("abcde")})


@pytest.fixture
def db(docs: Path, tmp_path: Path) -> Path:
    ingest(tmp_path / "index.db", FolderSource(docs, source_id="s"), CountingEmbedder("old"))
    return tmp_path / "index.db"


def ids(db: Path) -> set[object]:
    return {row[2] for row in contents(db)[0]}


@pytest.mark.parametrize("case", ["empty", "unlisted", "one file", "no prune", "failed"])
def test_a_rebuild_loses_no_document(docs: Path, db: Path, case: str) -> None:
    """Where documents failed or were not seen, the switch waits, says why, and the old model goes on answering."""
    options, source = RunOptions(rebuild=True), FolderSource(docs, source_id="s")
    match case:
        case "empty":
            source = ItemsSource([], "s")
        case "unlisted":
            source = ItemsSource([next(iter(source.items())), UnlistedPart("sub", "Permission denied")], "s")
        case "one file":
            source, options = FilesSource([docs / "a.txt"], "s"), RunOptions(rebuild=True, delete_missing=False)
        case "no prune":
            (docs / "b.txt").unlink()
            options = RunOptions(rebuild=True, delete_missing=False)
        case _:
            write(docs, {"b.txt": _BAD})
    result = ingest(db, source, CountingEmbedder("new"), run=options)
    assert result.outcome == "completed"
    assert any("old model goes on answering" in warning for warning in result.warnings)
    assert ids(db) == {f"{name}.txt" for name in "abcde"}
    with IngestionPipeline.open(db, embedder=CountingEmbedder("old")) as pipeline:
        assert pipeline.collection.search("kide", top=3)
    if case == "failed":
        with IngestionPipeline.open(db, embedder=CountingEmbedder("old")) as pipeline:
            pipeline.remove("s", ["b.txt"])
        done = ingest(db, FolderSource(docs, source_id="s"), CountingEmbedder("new"), run=RunOptions(rebuild=True))
        assert done.outcome == "completed"
        assert not done.warnings
        assert ids(db) == {"a.txt", "c.txt", "d.txt", "e.txt"}


def test_a_name_that_rebuilds_use_is_refused(tmp_path: Path) -> None:
    """A collection of the user's can never be taken for a rebuild's and dropped."""
    with pytest.raises(QedgeError) as error:
        IngestionPipeline.open(tmp_path / "index.db", collection="chunks_rebuild")
    assert error.value.code == 6005


def test_scattered_poisonous_documents_do_not_suspend(docs: Path, tmp_path: Path) -> None:
    """Three that are not in a row are three failures; the run completes, and what is gone is removed."""
    write(docs, {"aa.txt": "poison 1", "bb.txt": "poison 2", "cc.txt": "poison 3"})
    db, embedder = tmp_path / "p.db", CountingEmbedder(fail_on=lambda text: "poison" in text)
    assert ingest(db, FolderSource(docs), embedder).outcome == "completed"
    (docs / "e.txt").unlink()
    result = ingest(db, FolderSource(docs), embedder)
    assert (result.outcome, result.documents_failed, result.documents_removed) == ("completed", 3, 1)


@pytest.mark.parametrize("second", ["Another text.", "\0" * 5000], ids=["other text", "half a save"])
def test_content_that_changes_between_the_reads_is_not_kept(tmp_path: Path, second: str) -> None:
    """What is extracted must be what was hashed: else the document fails with 6053 and is read again."""
    reads = iter([b"The text.", second.encode()])

    def items() -> Iterator[SourceItem]:
        yield SourceItem("a.txt", "text/plain", lambda: io.BytesIO(next(reads, b"The text.")))

    db = tmp_path / "index.db"
    result = ingest(db, ItemsSource(items, "s"), CountingEmbedder())
    assert [document.failure and document.failure.code for document in result.documents] == [6053]
    assert contents(db)[0] == []
    assert ingest(db, ItemsSource(items, "s"), CountingEmbedder()).documents_indexed == 1
    assert [row[4] for row in contents(db)[0]] == ["The text."]


def test_the_size_limit_holds_for_the_second_read(tmp_path: Path) -> None:
    """A document that grows between the reads does not fill the memory."""
    reads = iter([b"Short.", b"x" * 50_000_000])
    items = [SourceItem("a.txt", "text/plain", lambda: io.BytesIO(next(reads)))]
    result = ingest(tmp_path / "index.db", ItemsSource(items, "s"), CountingEmbedder())
    assert [document.outcome for document in result.documents] == ["failed"]


def test_a_resumed_run_never_passes_over_what_it_never_met(docs: Path, tmp_path: Path) -> None:
    """A wider pattern than that of the suspended runs before: the new documents are work, not "covered"."""
    write(docs, {f"m{number}.md": f"Number {number}." for number in range(6)})
    db = tmp_path / "index2.db"
    ingest(db, FolderSource(docs, "*.md", source_id="s"), CountingEmbedder(), budget=IngestionBudget(max_documents=4))
    for _ in range(30):
        result = ingest(
            db, FolderSource(docs, source_id="s"), CountingEmbedder(), budget=IngestionBudget(max_duration=1e-6)
        )
        if result.outcome == "completed":
            break
    assert len(ids(db)) == 11


def test_duration_bounds_a_run_that_embeds_nothing(docs: Path, db: Path) -> None:
    """`--force` over an unchanged folder stops in time too."""
    result = ingest(
        db,
        FolderSource(docs, source_id="s"),
        CountingEmbedder("old"),
        run=RunOptions(force=True),
        budget=IngestionBudget(max_duration=1e-6),
    )
    assert (result.outcome, result.documents_indexed) == ("suspended", 1)


def test_swapped_and_rotated_files_embed_nothing(docs: Path, db: Path) -> None:
    """A text that moves to another document in the same run keeps its vector, whichever comes first."""
    a, b, c = ((docs / f"{name}.txt").read_text() for name in "abc")
    write(docs, {"a.txt": b, "b.txt": c, "c.txt": a})
    embedder = CountingEmbedder("old")
    result = ingest(db, FolderSource(docs, source_id="s"), embedder)
    assert (result.documents_indexed, embedder.texts) == (3, [])
    assert contents(db)[3] == []
    check_integrity(db)


@pytest.mark.parametrize(
    "fields",
    [
        {"modified_utc": datetime(2026, 1, 1, tzinfo=timezone.utc)},
        {"modified_utc": "\ud800"},
        {"size_bytes": 2**70},
        {"size_bytes": -1},
        {"media_type": "text/\ud800"},
        {"document_id": "a\udcff.txt"},
        {"document_id": 7},
        {"document_id": ""},
    ],
    ids=str,
)
def test_an_odd_item_costs_itself(tmp_path: Path, fields: dict[str, Any]) -> None:
    """6055 for an item that could not be stored; its neighbours are indexed."""
    good = [SourceItem(name, "text/plain", lambda: io.BytesIO(b"Good.")) for name in ("1.txt", "3.txt")]
    odd: dict[str, Any] = {
        "document_id": "2.txt",
        "media_type": "text/plain",
        "open": lambda: io.BytesIO(b"Odd."),
        **fields,
    }
    result = ingest(tmp_path / "index.db", ItemsSource([good[0], SourceItem(**odd), good[1]], "s"), CountingEmbedder())
    assert (result.outcome, result.documents_indexed, result.documents_failed) == ("completed", 2, 1)
    assert [document.failure.code for document in result.documents if document.failure] == [6055]
