"""Search with the default model."""

from __future__ import annotations

import pytest

from qedge_dagster.collection import Collection
from qedge_dagster.embedding import default_embedder
from tests.collection.support import build, row

SENTENCES = [
    "The roof leaks above the kitchen when it rains.",
    "Bread needs flour, water, salt and yeast.",
    "The ferry to the island leaves at six in the morning.",
    "Error E1047: the pump does not start.",
    "Tomatoes want sun, and water at the root.",
]


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    embedder = default_embedder()
    path = tmp_path_factory.mktemp("model") / "c.db"
    build(path, [row(text, f"{number}.md") for number, text in enumerate(SENTENCES)], embedder)
    with Collection.open(path, embedder=embedder) as collection:
        yield collection


@pytest.mark.parametrize(
    ("question", "document_id"),
    [("water damage in the house", "0.md"), ("how to bake", "1.md"), ("boat timetable", "2.md")],
)
def test_meaning_is_found_without_a_common_word(collection, question, document_id):
    """The vector lane finds what the keyword lane cannot."""
    assert collection.search(question)[0].chunk.document_id == document_id


def test_hybrid_search_needs_no_common_word_either(collection):
    """Where no word matches, the vector lane alone decides."""
    hits = collection.hybrid_search("boat timetable")
    assert [hit.vector_rank for hit in hits] == [1, 2, 3, 4, 5]
    assert {hit.keyword_rank for hit in hits} == {None}
    assert hits[0].chunk.document_id == "2.md"


def test_a_code_is_found_by_its_letters(collection):
    """The hybrid search puts the one chunk with the identifier first."""
    hit = collection.hybrid_search("E1047")[0]
    assert (hit.chunk.document_id, hit.keyword_rank) == ("3.md", 1)


def test_the_text_itself_is_nearest(collection):
    """A query equal to a chunk scores 1, the others less."""
    hits = collection.search(SENTENCES[2])
    assert hits[0].chunk.document_id == "2.md"
    assert hits[0].score == pytest.approx(1, abs=1e-4)
    assert all(-1 <= hit.score < 0.9 for hit in hits[1:])


@pytest.mark.parametrize(
    "text", ["C++", "what's up?", '"', "🙂", "x" * 10_000, "roof " * 2_000, "a\0b", "\ud800", "机器学习"]
)
def test_no_text_fails_the_model(collection, text):
    """Any user string is embedded: too long, no letters, no valid Unicode."""
    assert len(collection.search(text)) == len(collection.hybrid_search(text)) == len(SENTENCES)
