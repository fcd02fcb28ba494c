"""An embedder that fails: what it costs is as little as can be, and no text keeps the others out of the collection."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from qedge_dagster import FolderSource, IngestionBudget, IngestionOptions, QedgeError, RunResult
from qedge_dagster.embedding.base import EmbeddingBatch
from tests.pipeline.support import CountingEmbedder, check_integrity, contents, ingest, prose, write

_GOOD = ("c", "f", "i")


class Recorder(CountingEmbedder):
    """Keeps the texts of each call, also of those that fail."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.windows: list[list[str]] = []

    def embed_documents(self, texts: Sequence[str]) -> EmbeddingBatch:
        self.windows.append(list(texts))
        return super().embed_documents(texts)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


def codes(result: RunResult) -> dict[str, int]:
    return {document.document_id: document.failure.code for document in result.documents if document.failure}


def indexed(db: Path) -> set[object]:
    return {row[2] for row in contents(db)[0]}


def test_a_call_that_fails_is_made_again_in_halves(tmp_path: Path, db: Path) -> None:
    """Of seven texts, four and three, in their order; nothing is embedded a third time."""
    docs = write(tmp_path / "docs", {"a.txt": "\n\n".join(prose(1, 24))})
    embedder = Recorder()
    embedder._fail_on = lambda _: len(embedder.windows) == 1
    result = ingest(db, FolderSource(docs), embedder)
    whole, first, second = embedder.windows
    assert first + second == whole
    assert len(first) - len(second) in (0, 1)
    assert (codes(result), result.embed_calls, result.texts_embedded) == ({}, 3, len(whole))


@pytest.mark.parametrize(
    "budget",
    [
        IngestionBudget(),
        IngestionBudget(max_documents=1),
        IngestionBudget(max_chunks=1),
        IngestionBudget(max_tokens=1),
        IngestionBudget(max_duration=1e-9),
    ],
    ids=["none", "documents", "chunks", "tokens", "duration"],
)
@pytest.mark.parametrize("poisonous", ["a", "abde", "abdeghjk"])
def test_poisonous_documents_keep_nothing_out(
    tmp_path: Path, db: Path, poisonous: str, budget: IngestionBudget
) -> None:
    """Wherever they lie, and however little a run may do: run after run, all others get in, are kept up to date, and
    are embedded once."""
    names = [*_GOOD, *poisonous]
    texts = {f"{name}.txt": f"{'poison' if name in poisonous else 'text'} {name}" for name in names}
    docs = write(tmp_path / "docs", texts)
    embedder = CountingEmbedder(fail_on=lambda text: "poison" in text)
    good = {f"{name}.txt" for name in _GOOD}
    for edition in range(2):
        for _ in range(2 * len(names)):
            result = ingest(db, FolderSource(docs), embedder, budget=budget)
            assert set(codes(result).values()) <= {6206}
            if result.outcome == "completed":
                break
        assert indexed(db) == good
        assert len(embedder.texts) == len(set(embedder.texts)) == (edition + 1) * len(good)
        write(docs, {name: f"text {name}, second edition" for name in good})
    check_integrity(db)


def test_many_poisonous_documents_in_a_row_are_passed(tmp_path: Path, db: Path) -> None:
    """Three suspend the run, and the next one goes on at the third: what lies behind them all is reached."""
    files = {f"{number:02}.txt": f"poison {number}" for number in range(9)}
    docs = write(tmp_path / "docs", {**files, "last.txt": "text"})
    for _ in range(5):
        result = ingest(db, FolderSource(docs), CountingEmbedder(fail_on=lambda text: "poison" in text))
        assert (result.outcome, result.suspend_reason) == ("suspended", "embedding:failed")
    assert indexed(db) == {"last.txt"}


def test_one_poisonous_passage_costs_its_window(tmp_path: Path, db: Path) -> None:
    """The other windows of the document are kept for its next attempt, with which only the passage is embedded."""
    paragraphs = prose(3, 80, longest=90)
    paragraphs[79] = "poison " * 222  # the longest, so that its window is the last
    docs = write(tmp_path / "docs", {"a.txt": "\n\n".join(paragraphs)})
    options = IngestionOptions(write_batch_size=1)
    embedder = Recorder(fail_on=lambda text: "poison" in text)
    assert codes(ingest(db, FolderSource(docs), embedder, options=options)) == {"a.txt": 6206}
    before = len(embedder.texts)
    assert before > 5
    assert codes(ingest(db, FolderSource(docs), embedder, options=options)) == {"a.txt": 6206}
    assert len(embedder.texts) == before
    mended = Recorder()
    assert ingest(db, FolderSource(docs), mended, options=options).documents_indexed == 1
    assert len(embedder.texts) + len(mended.texts) == len(set(embedder.texts + mended.texts)) == len(contents(db)[0])
    check_integrity(db)


@pytest.mark.parametrize("value", [0.0, np.nan, -np.inf], ids=str)
def test_an_unusable_vector_is_named_as_such(tmp_path: Path, db: Path, value: float) -> None:
    """6206 says how many vectors of the window are not usable; a later run with a sound model takes the document."""
    docs = write(tmp_path / "docs", {"a.txt": "text", "b.txt": "poison", "c.txt": "other text"})

    class Spoiling(CountingEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> EmbeddingBatch:
            batch = super().embed_documents(texts)
            batch.vectors[["poison" in text for text in texts]] = value
            return batch

    result = ingest(db, FolderSource(docs), Spoiling())
    [failure] = [document.failure for document in result.documents if document.failure]
    assert (failure.code, failure.message) == (6206, "1 of 1 vectors are zero or not finite")
    assert indexed(db) == {"a.txt", "c.txt"}
    assert ingest(db, FolderSource(docs), CountingEmbedder()).documents_indexed == 1


@pytest.mark.parametrize(
    ("error", "shown"),
    [(ConnectionError("the secret key"), "ConnectionError"), (QedgeError(6208, "no model at all"), "no model at all")],
    ids=["any", "own"],
)
def test_a_model_that_cannot_be_loaded_ends_the_run(tmp_path: Path, db: Path, error: Exception, shown: str) -> None:
    """6208 at the first document that needs it, and not a failure of each document."""
    docs = write(tmp_path / "docs", {f"{number}.txt": f"text {number}" for number in range(4)})

    class Absent(CountingEmbedder):
        def load(self) -> None:
            raise error

    result = ingest(db, FolderSource(docs), Absent())
    assert result.failure is not None
    assert (result.outcome, result.failure.code, result.documents_failed) == ("failed", 6208, 0)
    assert shown in result.failure.message
    assert "secret" not in str(result.failure)
    assert ingest(db, FolderSource(docs), CountingEmbedder()).documents_indexed == 4


def test_a_write_that_is_refused_is_made_once(tmp_path: Path, db: Path) -> None:
    """6207 for the document, whose chunks and vectors are made once in the run; the next run tries it again, with the
    vectors that it has."""
    docs = write(tmp_path / "docs", {"a.txt": "text", "b.txt": "refused", "c.txt": "other text"})
    ingest(db, FolderSource(docs, "none"), CountingEmbedder())
    with closing(apsw.Connection(str(db))) as connection:
        connection.execute(
            "CREATE TABLE attempts (x); CREATE TRIGGER guard BEFORE INSERT ON chunks WHEN NEW.document_id = 'b.txt'"
            " BEGIN INSERT INTO attempts VALUES (1); SELECT RAISE(FAIL, 'not here'); END"
        )
        embedder = CountingEmbedder()
        result = ingest(db, FolderSource(docs), embedder)
        assert (result.outcome, codes(result), sorted(embedder.texts)) == (
            "completed",
            {"b.txt": 6207},
            ["other text", "refused", "text"],
        )
        assert connection.execute("SELECT count(*) FROM attempts").get == 0  # rolled back with all the rest
        assert indexed(db) == {"a.txt", "c.txt"}
        connection.execute("DROP TRIGGER guard; DROP TABLE attempts")
    assert ingest(db, FolderSource(docs), CountingEmbedder()).documents_indexed == 1
    check_integrity(db)
