"""The order in which the fragments of a page are read where that of the file is not wanted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from statistics import median

from qedge_dagster.extractors.pdf.fragments import Fragment

__all__ = ["by_layout"]

#: Columns of columns; a bound for hostile pages, as each level costs a sort.
_MAX_DEPTH = 8
_MAX_TRIES = 6
# In units of the font size.
_MIN_GUTTER = 0.8
_MIN_MEASURE = 12.0
_SAME_ROW = 0.4


def by_layout(fragments: Sequence[Fragment]) -> list[Fragment]:
    """Column by column, each from the top; text of the direction that most of the page has comes first.

    A gutter parts columns if both sides have lines of some length, one side beside the other: the short cells of tables
    are read row by row. What lies across a gutter is read between what is above it and what is below it.
    """
    letters: Counter[int] = Counter()
    for fragment in fragments:
        letters[fragment.angle] += len(fragment.text)
    ordered: list[Fragment] = []
    for angle, _ in letters.most_common():
        ordered += _columns([fragment for fragment in fragments if fragment.angle == angle], 0)
    return ordered


def _columns(fragments: list[Fragment], depth: int) -> list[Fragment]:
    gutter = _gutter(fragments) if depth < _MAX_DEPTH else None
    if gutter is None:
        return _rows(fragments)
    left_first = sum(fragment.rtl for fragment in fragments) * 2 <= len(fragments)

    def side(fragment: Fragment) -> int:
        if fragment.end <= gutter:
            return 0 if left_first else 1
        return 2 if fragment.start < gutter else 1 if left_first else 0

    ordered: list[Fragment] = []
    from_the_top = sorted(fragments, key=lambda fragment: -fragment.base)
    for across, band in groupby(from_the_top, key=lambda fragment: side(fragment) == 2):
        if across:
            ordered += _rows(list(band))
            continue
        parts: tuple[list[Fragment], list[Fragment]] = ([], [])
        for fragment in band:
            parts[side(fragment)].append(fragment)
        for part in parts:
            ordered += _columns(part, depth + 1)
    return ordered


def _gutter(fragments: Sequence[Fragment]) -> float | None:
    """Where to part the fragments, along the baseline; None if they are one column."""
    if len(fragments) < 4:
        return None
    size = median(fragment.size for fragment in fragments)
    tries = sorted(_valleys(fragments, size))[:_MAX_TRIES]
    for _, _, middle in tries:
        left = [fragment for fragment in fragments if fragment.end <= middle]
        right = [fragment for fragment in fragments if fragment.start >= middle]
        if _is_column(left, size) and _is_column(right, size) and _side_by_side(left, right):
            return middle
    return None


def _valleys(fragments: Sequence[Fragment], size: float) -> Iterator[tuple[int, float, float]]:
    """Stretches with fragments on both sides: how many cover it, minus the width, and the middle."""
    edges = sorted([(fragment.start, 1) for fragment in fragments] + [(fragment.end, -1) for fragment in fragments])
    begun = ended = 0
    for (place, change), (following, _) in pairwise(edges):
        begun += change > 0
        ended += change < 0
        covering = begun - ended
        if ended > 1 and len(fragments) - begun > 1 and following - place >= _MIN_GUTTER * size:
            yield covering, place - following, (place + following) / 2


def _is_column(fragments: Sequence[Fragment], size: float) -> bool:
    return len(fragments) > 1 and median(f.end - f.start for f in fragments) >= _MIN_MEASURE * size


def _side_by_side(left: Sequence[Fragment], right: Sequence[Fragment]) -> bool:
    return min(f.base for f in left) < max(f.base for f in right) and min(f.base for f in right) < max(
        f.base for f in left
    )


def _rows(fragments: Sequence[Fragment]) -> list[Fragment]:
    ordered: list[Fragment] = []
    row: list[Fragment] = []
    for fragment in sorted(fragments, key=lambda fragment: -fragment.base):
        if row and row[0].base - fragment.base > _SAME_ROW * min(row[0].size, fragment.size):
            ordered += _row(row)
            row = []
        row.append(fragment)
    return ordered + _row(row)


def _row(row: Sequence[Fragment]) -> list[Fragment]:
    if sum(fragment.rtl for fragment in row) * 2 > len(row):
        return sorted(row, key=lambda fragment: -fragment.end)
    return sorted(row, key=lambda fragment: fragment.start)
