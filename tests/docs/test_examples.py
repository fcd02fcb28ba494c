"""The sample corpus answers its own questions, by the real default model."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from qedge_dagster import Collection, FolderSource, IngestionPipeline, OnnxEmbedder

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def _questions() -> list[dict[str, str]]:
    with (EXAMPLES / "questions.tsv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    embedder = OnnxEmbedder.default()
    database = tmp_path_factory.mktemp("examples") / "examples.db"
    with IngestionPipeline.open(database, embedder=embedder) as pipeline:
        result = pipeline.run(FolderSource(EXAMPLES / "docs", source_id="examples"))
        assert result.outcome == "completed"
        assert result.documents_failed == 0
        assert result.documents_seen == result.documents_indexed
        yield pipeline.collection


def test_every_document_is_asked_for() -> None:
    """Each document of the corpus answers a question, and each question is answered by one of them."""
    documents = {path.relative_to(EXAMPLES / "docs").as_posix() for path in (EXAMPLES / "docs").rglob("*.*")}
    assert {question["document"] for question in _questions()} == documents


def test_hybrid_search_finds_the_right_document_first(collection: Collection) -> None:
    """For nine questions of ten the best chunk is of the document that answers; for all it is among the first ten."""
    questions = _questions()
    first = among = 0
    for question in questions:
        hits = collection.hybrid_search(question["question"], top=10)
        documents = [hit.chunk.document_id for hit in hits]
        first += documents[0] == question["document"]
        among += question["document"] in documents
    assert first >= 0.9 * len(questions)
    assert among == len(questions)
