"""The two lanes of a search and their fusion. The caller holds the snapshot.

A lane gives `(row id, value)` pairs, best (lowest value) first, at most `depth` of them. Rows of equal value come in
reading order, so that two databases of the same content answer alike, whatever their row ids.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, cast

import apsw

from qedge_dagster.collection.chunk import COLUMNS, ORDER, StoredChunk
from qedge_dagster.collection.filters import Filter
from qedge_dagster.collection.keywords import match_expression
from qedge_dagster.collection.schema import CollectionSpec

__all__ = ["MAX_DEPTH", "fuse", "keyword_lane", "load_chunks", "ranks", "vector_lane"]

Lane: TypeAlias = list[tuple[int, float]]

#: vec0 takes no larger k.
MAX_DEPTH = 4096

# Of the full-text columns, text and heading path: a word of a heading says more of what a chunk is about.
_BM25_WEIGHTS = "1.0, 2.0"


def vector_lane(
    connection: apsw.Connection, spec: CollectionSpec, vector: bytes, depth: int, filter_: Filter | None
) -> Lane:
    """Nearest rows with their distance; `vector` is float32 bytes of the collection's dimension."""
    name = spec.name
    condition, values = ("TRUE", ()) if filter_ is None else filter_.sql()
    # Given the row ids, vec0 looks at no others: the k nearest of those that pass, not what passes of the k nearest.
    allowed = "" if filter_ is None else f"AND rowid IN (SELECT _rowid FROM {name} WHERE {condition})"
    function = "vec_distance_cosine" if spec.distance == "cosine" else "vec_distance_l2"

    def nearest(limit: int) -> Lane:
        rows = connection.execute(
            f"SELECT rowid, distance FROM {name}_vec WHERE embedding MATCH ? AND k = ? {allowed} ORDER BY distance",
            (vector, limit, *values),
        )
        return cast("Lane", rows.fetchall())

    def in_full_order() -> Lane:
        rows = connection.execute(
            f"SELECT _rowid, {function}(embedding, ?) AS value FROM {name} JOIN {name}_vec AS v ON v.rowid = _rowid"
            f" WHERE {condition} ORDER BY value, {ORDER} LIMIT ?",
            (vector, *values, depth),
        )
        return cast("Lane", rows.fetchall())

    return _lane(connection, name, nearest, in_full_order, depth)


def keyword_lane(
    connection: apsw.Connection,
    spec: CollectionSpec,
    keywords: str | Sequence[str],
    depth: int,
    filter_: Filter | None,
) -> Lane:
    """Best rows by bm25 (negative, lower is better)."""
    name = spec.name
    expression = match_expression(keywords, spec.fts_tokenizer)
    if expression is None:
        return []
    condition, values = ("TRUE", ()) if filter_ is None else filter_.sql()
    # The plus keeps the row id from the index: with it, SQLite would run MATCH again for each row that passes.
    allowed = "" if filter_ is None else f"AND +{name}_fts.rowid IN (SELECT _rowid FROM {name} WHERE {condition})"
    value = f"bm25({name}_fts, {_BM25_WEIGHTS})"

    def best(limit: int) -> Lane:
        rows = connection.execute(
            f"SELECT rowid, {value} AS value FROM {name}_fts WHERE {name}_fts MATCH ? {allowed} ORDER BY value LIMIT ?",
            (expression, *values, limit),
        )
        return cast("Lane", rows.fetchall())

    def in_full_order() -> Lane:
        # CROSS JOIN fixes the order of the loops: MATCH outside, once.
        rows = connection.execute(
            f"SELECT _rowid, {value} AS value FROM {name}_fts CROSS JOIN {name} ON _rowid = {name}_fts.rowid"
            f" WHERE {name}_fts MATCH ? {allowed} ORDER BY value, {ORDER} LIMIT ?",
            (expression, *values, depth),
        )
        return cast("Lane", rows.fetchall())

    return _lane(connection, name, best, in_full_order, depth)


def _lane(
    connection: apsw.Connection,
    name: str,
    fetch: Callable[[int], Lane],
    in_full_order: Callable[[], Lane],
    depth: int,
) -> Lane:
    """Which of the rows that tie at the end of the lane are in it must not depend on the index, so they are all
    fetched; only where there are thousands does the database sort every row."""
    for limit in (min(depth + 1, MAX_DEPTH), MAX_DEPTH):
        rows = fetch(limit)
        if len(rows) < limit or rows[depth - 1][1] != rows[-1][1]:
            last = rows[:depth][-1][1] if rows else 0.0
            value = {rowid: value for rowid, value in rows if value <= last}
            ordered = sorted(_reading_order(connection, name, value), key=value.__getitem__)
            return [(rowid, value[rowid]) for rowid in ordered[:depth]]
    return in_full_order()


def _reading_order(connection: apsw.Connection, name: str, rowids: Iterable[int]) -> list[int]:
    rows = connection.execute(
        f"SELECT _rowid FROM {name} WHERE _rowid IN (SELECT value FROM json_each(?)) ORDER BY {ORDER}",
        (json.dumps(list(rowids)),),
    )
    return [cast("int", rowid) for (rowid,) in rows]


def ranks(lane: Lane) -> dict[int, int]:
    """Rank by row id, from 1."""
    return {rowid: rank for rank, (rowid, _) in enumerate(lane, start=1)}


def fuse(vector: Lane, keyword: Lane, weights: tuple[float, float], k: float) -> list[tuple[int, float]]:
    """Reciprocal rank fusion: (row id, score), best first, 1.0 for a row that is first in both lanes.

    Ties are common, since equal ranks in different lanes weigh the same: the row with the better keyword rank, whose
    text does hold the words, comes first.
    """
    by_vector, by_keyword = ranks(vector), ranks(keyword)
    score: dict[int, float] = {}
    for lane, weight in zip((by_vector, by_keyword), weights, strict=True):
        if weight > 0:
            for rowid, rank in lane.items():
                score[rowid] = score.get(rowid, 0.0) + weight / (k + rank)
    best = sum(weights) / (k + 1)
    # Rounded, since sums that are equal (1/2, 1/3 + 1/6) may differ in their last bit.
    fused = {rowid: round(total / best, 12) for rowid, total in score.items()}
    ordered = sorted(fused, key=lambda row: (-fused[row], by_keyword.get(row, math.inf), by_vector.get(row, math.inf)))
    return [(rowid, fused[rowid]) for rowid in ordered]


def load_chunks(connection: apsw.Connection, name: str, rowids: Iterable[int]) -> dict[int, StoredChunk]:
    rows = connection.execute(
        f"SELECT _rowid, {', '.join(COLUMNS)} FROM {name} WHERE _rowid IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rowids)),),
    )
    return {cast("int", rowid): StoredChunk.from_row(row) for rowid, *row in rows}
