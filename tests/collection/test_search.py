"""The lanes against exact references, and their fusion."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qedge_dagster.chunking.breadcrumbs import join_path
from qedge_dagster.collection import Collection, Equal
from qedge_dagster.collection.connection import Database
from qedge_dagster.errors import QedgeError
from tests.collection.support import HashEmbedder, build, row

WORDS = ["roof", "leak", "gutter", "tile", "rain", "ladder"]
# Few different numbers, so that many rows are equally far away.
LATTICE = st.lists(st.integers(-1, 1), min_size=3, max_size=3).filter(any)


def random_rows(count: int, seed: int, dimensions: int = 8) -> list[dict]:
    """Rows with few different texts and many twins, in no order."""
    rng = np.random.default_rng(seed)
    rows = [
        row(
            " ".join(rng.choice(WORDS, size=rng.integers(1, 6))),
            document_id=f"d{number % 11:02}",
            ordinal=number // 11,
            page=int(rng.integers(1, 4)),
            vector=np.eye(dimensions)[rng.integers(dimensions)] + np.eye(dimensions)[0] * 0.5,
            key=f"{number:04}",
        )
        for number in range(count)
    ]
    return [rows[index] for index in rng.permutation(count)]


def order(columns: dict) -> tuple:
    return columns["source_id"], columns["document_id"], columns["ordinal"], columns["key"]


@settings(max_examples=25)
@given(
    vectors=st.lists(LATTICE, min_size=1, max_size=40),
    query=LATTICE,
    top=st.integers(1, 45),
    distance=st.sampled_from(["cosine", "l2"]),
)
def test_vector_search_is_the_exact_top_k(vectors, query, top, distance):
    """The nearest rows by numpy's reckoning, equal ones in reading order, for both distances."""
    rows = [row(f"t{n}", f"d{n % 3}", n // 3, vector=vector, key=f"{n:02}") for n, vector in enumerate(vectors)]
    matrix, q = np.array(vectors, dtype=np.float64), np.array(query, dtype=np.float64)
    if distance == "cosine":
        distances = 1 - matrix @ q / np.linalg.norm(matrix, axis=1) / np.linalg.norm(q)
        score = 1 - distances
    else:
        distances = np.linalg.norm(matrix - q, axis=1)
        score = 1 / (1 + distances)
    expected = sorted(range(len(rows)), key=lambda n: (round(distances[n], 5), order(rows[n])))[:top]
    with TemporaryDirectory() as folder:
        path = Path(folder, "c.db")
        build(path, rows[::-1], HashEmbedder(3), distance=distance)
        with Collection.open(path) as collection:
            hits = collection.search(query, top=top)
    assert [hit.chunk.key for hit in hits] == [rows[n]["key"] for n in expected]
    assert [hit.score for hit in hits] == pytest.approx(score[expected], abs=1e-5)
    assert [hit.vector_rank for hit in hits] == list(range(1, len(hits) + 1))


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """The same rows in two databases, inserted in different orders."""
    rows = random_rows(120, seed=1)
    paths = [tmp_path_factory.mktemp("twins") / "c.db" for _ in range(2)]
    build(paths[0], rows)
    build(paths[1], [rows[index] for index in np.random.default_rng(2).permutation(len(rows))])
    with (
        Collection.open(paths[0], embedder=HashEmbedder) as one,
        Collection.open(paths[1], embedder=HashEmbedder) as two,
    ):
        yield one, two


@settings(max_examples=40)
@given(words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3), top=st.integers(1, 130))
def test_answers_do_not_depend_on_row_ids(twins, words, top):
    """Two databases of the same content give the same hits in the same order, ties at the end included."""
    text = " ".join(words)
    for search in ("search", "keyword_search", "hybrid_search"):
        first, second = ([(h.chunk.key, h.score) for h in getattr(c, search)(text, top=top)] for c in twins)
        assert first == second


@settings(max_examples=40)
@example(words=["leak", "roof"], keywords=None, top=23, extra=7, k=0, weights=(1, 1))
@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
    keywords=st.none() | st.lists(st.sampled_from(WORDS), max_size=2),
    top=st.integers(1, 40),
    extra=st.integers(0, 60),
    k=st.sampled_from([0, 1, 60, 1000.5]),
    weights=st.sampled_from([(1, 1), (1, 0), (0, 2), (0.3, 0.7)]),
)
def test_hybrid_search_is_reciprocal_rank_fusion(twins, words, keywords, top, extra, k, weights):
    """Scores, order and ranks are those of the formula, computed from the two lanes' own answers."""
    collection, text, depth = twins[0], " ".join(words), top + extra
    lanes = collection.search(text, top=depth), collection.keyword_search(keywords or text, top=depth)
    if keywords == []:
        lanes = lanes[0], []
    ranks = [{hit.chunk.key: position for position, hit in enumerate(lane, start=1)} for lane in lanes]
    chunks = {hit.chunk.key: hit.chunk for lane in lanes for hit in lane}

    def score(key: str) -> float:
        found = (weight / (k + rank[key]) for weight, rank in zip(weights, ranks, strict=True) if key in rank)
        return sum(found) / (sum(weights) / (k + 1))

    def place(key: str) -> tuple:
        return -round(score(key), 12), ranks[1].get(key, 1e9), ranks[0].get(key, 1e9)

    expected = [key for key in sorted(chunks, key=place) if score(key) > 0][:top]
    hits = collection.hybrid_search(text, keywords, top, depth=depth, k=k, weights=weights)
    assert [hit.chunk.key for hit in hits] == expected
    assert [hit.score for hit in hits] == pytest.approx([score(key) for key in expected])
    assert [(hit.vector_rank, hit.keyword_rank) for hit in hits] == [
        (ranks[0].get(key), ranks[1].get(key)) for key in expected
    ]


def test_thousands_of_equal_rows(tmp_path):
    """More twins than vec0 returns: the first in reading order are the hits, not the first that were stored."""
    count = 4_300
    rows = [
        row("roof", f"d{number:05}", vector=[1, 0], key=f"{number:05}")
        for number in np.random.default_rng(0).permutation(count)
    ]
    rows.append(row("gutter roof", "z", vector=[0, 1], key="z"))
    build(tmp_path / "c.db", rows, HashEmbedder(2))
    with Collection.open(tmp_path / "c.db") as collection:
        expected = [f"{number:05}" for number in range(3)]
        assert [hit.chunk.key for hit in collection.search([1, 0], top=3)] == expected
        assert [hit.chunk.key for hit in collection.keyword_search("roof", top=3)] == expected
        assert [hit.chunk.key for hit in collection.search([0, 1], top=3)] == ["z", *expected[:2]]
        deepest = collection.search([1, 0], top=4096)
        assert [hit.chunk.key for hit in deepest] == [f"{number:05}" for number in range(4096)]


def test_a_score_of_one_is_first_in_both_lanes(tmp_path):
    """The fused score is between 0 and 1, and one lane alone gives at most a half."""
    embedder = HashEmbedder()
    build(tmp_path / "c.db", [row("roof leak", "a"), row("gutter", "b"), row("tile", "c"), row("rain", "d")], embedder)
    with Collection.open(tmp_path / "c.db", embedder=embedder) as collection:
        first, *others = collection.hybrid_search("roof leak")
        assert (first.chunk.document_id, first.score, first.vector_rank, first.keyword_rank) == ("a", 1.0, 1, 1)
        assert all(0 < hit.score < 0.5 and hit.keyword_rank is None for hit in others)
        (hit,) = collection.hybrid_search("", ["tile"])
        assert (hit.chunk.document_id, hit.score, hit.vector_rank, hit.keyword_rank) == ("c", 0.5, None, 1)


def test_keyword_scores_rise_with_the_hit(tmp_path):
    """Higher is better, and a rare word counts for more than one that every chunk has."""
    rows = [row(f"the roof {word}", word) for word in ("tile", "gutter", "ladder", "rain")] + [
        row("the roof the roof", "z")
    ]
    build(tmp_path / "c.db", rows)
    with Collection.open(tmp_path / "c.db") as collection:
        hits = collection.keyword_search("the roof gutter")
    assert hits[0].chunk.document_id == "gutter"
    assert len(hits) == 5
    assert all(hit.score > 0 for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert [hit.keyword_rank for hit in hits] == [1, 2, 3, 4, 5]


def test_headings_are_searched(tmp_path):
    """A word of the heading path alone finds the chunk, and the path comes back in parts."""
    build(tmp_path / "c.db", [row("text", heading_path=join_path(["House", "Roof"])), row("other", ordinal=1)])
    with Collection.open(tmp_path / "c.db") as collection:
        (hit,) = collection.keyword_search("roof")
    assert hit.chunk.heading_path == ("House", "Roof")


@pytest.mark.parametrize("tokenizer", ["unicode61", "porter", "trigram"])
def test_each_full_text_tokenizer(tmp_path, tokenizer):
    """Porter finds other forms of a word, trigram any part of it, and both know how the collection was made."""
    build(tmp_path / "c.db", [row("leaking roofs 機械学習の方法")], fts_tokenizer=tokenizer)
    with Collection.open(tmp_path / "c.db") as collection:
        found = {word: bool(collection.keyword_search(word)) for word in ("roofs", "roof", "eakin", "機械学習")}
    assert (
        found
        == {
            "unicode61": {"roofs": True, "roof": False, "eakin": False, "機械学習": False},
            "porter": {"roofs": True, "roof": True, "eakin": False, "機械学習": False},
            "trigram": {"roofs": True, "roof": True, "eakin": True, "機械学習": True},
        }[tokenizer]
    )


@pytest.mark.parametrize(
    "options",
    [
        {"top": 0},
        {"top": 4097},
        {"top": 2.5},
        {"top": "3"},
        {"depth": 4097},
        {"depth": 5},
        {"depth": 0},
        {"k": -1},
        {"k": float("nan")},
        {"k": float("inf")},
        {"weights": (1e308, 1e308)},
        {"weights": (0, 0)},
        {"weights": (-1, 2)},
        {"weights": (float("inf"), 1)},
        {"weights": (1, float("nan"))},
    ],
)
def test_options_that_make_no_ranking(twins, options):
    """A limit beyond vec0's is refused, never cut down in silence; so are weights that rank nothing."""
    with pytest.raises(QedgeError) as caught:
        twins[0].hybrid_search("roof", **options)
    assert caught.value.code == 6005


def test_the_largest_top(twins):
    """4096 is allowed everywhere."""
    for search in ("search", "keyword_search", "hybrid_search"):
        assert len(getattr(twins[0], search)("roof leak gutter tile rain ladder", top=4096)) == 120
        assert len(getattr(twins[0], search)("roof", top=np.int64(3))) == 3


def test_rows_of_a_filter_that_nothing_passes(twins):
    """No hits, and no error."""
    nothing = Equal("document_id", "absent")
    for search in ("search", "keyword_search", "hybrid_search"):
        assert getattr(twins[0], search)("roof", filter=nothing) == []


def test_a_vector_without_its_chunk_is_no_hit(tmp_path):
    """An index that another program left out of step gives fewer hits, not an error."""
    build(tmp_path / "c.db", [row("roof", "a"), row("roof", "b")])
    with closing(Database(tmp_path / "c.db")) as database:
        database.connection.execute("DROP TRIGGER chunks_after_delete; DELETE FROM chunks WHERE document_id = 'a'")
    with Collection.open(tmp_path / "c.db", embedder=HashEmbedder) as collection:
        for search in ("search", "keyword_search", "hybrid_search"):
            assert [hit.chunk.document_id for hit in getattr(collection, search)("roof")] == ["b"]
