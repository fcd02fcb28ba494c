"""A budget ends a run on a committed boundary; running again is the resume."""

from __future__ import annotations

from pathlib import Path

import pytest

from qedge_dagster import FolderSource, IngestionBudget, IngestionOptions, QedgeError
from qedge_dagster.pipeline import IngestionPipeline
from qedge_dagster.pipeline.events import DocumentIndexed, RunStarted, WindowEmbedded
from tests.pipeline.support import CountingEmbedder, check_integrity, contents, ingest, prose, write

_WINDOW = IngestionOptions(write_batch_size=4)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    files = {f"{number:02}.txt": "\n\n".join(prose(number, 4 + number)) for number in range(11)}
    files["long.txt"] = "\n\n".join(prose(99, 120))
    return write(tmp_path / "docs", files)


def until_completed(db: Path, docs: Path, budget: IngestionBudget, embedder: CountingEmbedder) -> list[str]:
    """Run again and again; returns the reasons of the suspended runs."""
    reasons: list[str] = []
    for _ in range(500):
        result = ingest(db, FolderSource(docs), embedder, budget=budget, options=_WINDOW)
        if result.outcome == "completed":
            return reasons
        assert result.outcome == "suspended"
        check_integrity(db)
        reasons.append(str(result.suspend_reason))
    raise AssertionError("the end is never reached")


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (IngestionBudget(max_documents=3), "budget:documents"),
        (IngestionBudget(max_tokens=1500), "budget:tokens"),
        (IngestionBudget(max_chunks=10), "budget:chunks"),
        (IngestionBudget(max_duration=1e-9), "budget:duration"),
    ],
    ids=["documents", "tokens", "chunks", "duration"],
)
def test_budgeted_runs_end_in_the_rows_of_one_run(
    docs: Path, tmp_path: Path, budget: IngestionBudget, reason: str
) -> None:
    """The rows are those of one unbudgeted run, and no text is embedded twice."""
    whole, parts = CountingEmbedder(), CountingEmbedder()
    ingest(tmp_path / "whole.db", FolderSource(docs), whole, options=_WINDOW)
    reasons = until_completed(tmp_path / "parts.db", docs, budget, parts)
    assert len(reasons) > 1
    assert set(reasons) == {reason}
    assert contents(tmp_path / "parts.db") == contents(tmp_path / "whole.db")
    assert sorted(parts.texts) == sorted(whole.texts)


def test_max_documents_counts_those_that_needed_work(docs: Path, tmp_path: Path) -> None:
    """Skipped documents are free, so the limit is met exactly in each run."""
    db, embedder = tmp_path / "index.db", CountingEmbedder()
    for expected in (3, 3, 3, 3):
        result = ingest(db, FolderSource(docs), embedder, budget=IngestionBudget(max_documents=3))
        assert result.documents_indexed == expected
    assert result.outcome == "completed"


def test_a_suspended_run_goes_on_where_it_was(docs: Path, tmp_path: Path) -> None:
    """The next run starts at the document that the budget stopped at, and wraps round to what lies before it."""
    db, embedder = tmp_path / "index.db", CountingEmbedder()
    ingest(db, FolderSource(docs), embedder, budget=IngestionBudget(max_documents=5))
    write(docs, {"00.txt": "Changed meanwhile."})
    result = ingest(db, FolderSource(docs), embedder, budget=IngestionBudget(max_documents=5))
    assert [document.document_id for document in result.documents] == [f"{n:02}.txt" for n in range(5, 10)]
    result = ingest(db, FolderSource(docs), embedder)
    assert [document.document_id for document in result.documents] == ["10.txt", "long.txt", "00.txt"]
    assert result.outcome == "completed"


def test_nothing_is_removed_by_a_suspended_run(docs: Path, tmp_path: Path) -> None:
    """Only a completed run has seen everything."""
    db = tmp_path / "index.db"
    ingest(db, FolderSource(docs), CountingEmbedder())
    (docs / "00.txt").unlink()
    write(docs, {"01.txt": "one", "02.txt": "two"})
    result = ingest(db, FolderSource(docs), CountingEmbedder(), budget=IngestionBudget(max_documents=1))
    assert (result.outcome, result.documents_removed) == ("suspended", 0)
    result = ingest(db, FolderSource(docs), CountingEmbedder())
    assert (result.outcome, result.documents_removed) == ("completed", 1)


def test_prune_and_remove_leave_the_resume_position_alone(docs: Path, tmp_path: Path) -> None:
    """They end completed, but what an ingest has left to do is still to be done."""
    db, embedder = tmp_path / "index.db", CountingEmbedder()
    ingest(db, FolderSource(docs), embedder, budget=IngestionBudget(max_documents=5))
    with IngestionPipeline.open(db, embedder=embedder) as pipeline:
        assert pipeline.prune(FolderSource(docs)).outcome == "completed"
        assert pipeline.remove(str(docs.resolve()), ["00.txt"]).documents_removed == 1
    result = ingest(db, FolderSource(docs), embedder, budget=IngestionBudget(max_documents=1))
    assert [document.document_id for document in result.documents] == ["05.txt"]


@pytest.mark.parametrize("stop", ["request_stop", "cancel"])
def test_a_stop_ends_at_the_next_boundary(docs: Path, tmp_path: Path, stop: str) -> None:
    """A stop in the middle of a long document keeps its finished windows; the next run embeds only the rest."""
    db, embedder = tmp_path / "index.db", CountingEmbedder()
    with IngestionPipeline.open(db, embedder=embedder, options=_WINDOW) as pipeline:

        def on_event(event: object) -> None:
            if isinstance(event, WindowEmbedded) and event.document_id == "long.txt":
                getattr(pipeline, stop)()

        result = pipeline.run(FolderSource(docs), on_event=on_event)
    expected = {"request_stop": ("suspended", "caller:stop"), "cancel": ("cancelled", "lifecycle:stopping")}
    assert (result.outcome, result.suspend_reason) == expected[stop]
    assert result.documents_indexed == 11
    check_integrity(db)
    again = ingest(db, FolderSource(docs), embedder, options=_WINDOW)
    assert again.outcome == "completed"
    assert len(embedder.texts) == len(set(embedder.texts))


def test_a_consumer_that_stops_consuming_has_stopped_the_run(docs: Path, tmp_path: Path) -> None:
    """Closing the generator leaves a boundary, frees the lock and records the run as cancelled."""
    from qedge_dagster import RunOptions

    db, embedder = tmp_path / "index.db", CountingEmbedder()
    with IngestionPipeline.open(db, embedder=embedder, options=_WINDOW) as pipeline:
        events = pipeline.events(FolderSource(docs), RunOptions())
        assert isinstance(next(events), RunStarted)
        while not isinstance(next(events), DocumentIndexed):
            pass
        events.close()
        check_integrity(db)
        assert pipeline.diagnostics()["last_run_outcome"] == "cancelled"
        assert pipeline.diagnostics()["active_run"] is None
        assert pipeline.run(FolderSource(docs)).outcome == "completed"
    assert len(embedder.texts) == len(set(embedder.texts))


@pytest.mark.parametrize("name", ["max_duration", "max_documents", "max_chunks", "max_tokens"])
def test_a_budget_of_nothing_is_refused(name: str) -> None:
    """6005 when the budget is made."""
    with pytest.raises(QedgeError) as error:
        IngestionBudget(**{name: 0})
    assert error.value.code == 6005
