"""Cutting a region of text into pieces that keep the budget, at places that the text itself determines.

A stretch over the budget is cut in two at the candidate with the smallest hash that leaves a fair part on either side,
and so on with both parts. The hash depends on the nearby text alone, so two versions of a document share all the cuts
that are not next to an edit. (Filling one window after the other instead would move every cut behind an edit.)
"""

from __future__ import annotations

from dataclasses import dataclass

from qedge_dagster.chunking.base import ChunkBudget
from qedge_dagster.chunking.candidates import Candidates, rank
from qedge_dagster.chunking.inner_breaks import InnerBreaks
from qedge_dagster.chunking.layout import Layout, Table
from qedge_dagster.chunking.token_index import TokenIndex

__all__ = ["Cutter", "Piece", "Region"]

_FAIR_PART = 0.4  # of a budget, on either side of a cut


@dataclass(frozen=True, slots=True)
class Region:
    """Text that is chunked by itself. `whole_units` prefers to cut between units wherever they are, and repeats text
    only after a cut inside a unit."""

    start: int
    end: int
    heading_path: tuple[str, ...] = ()
    whole_units: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """`[start, end)` is new in this piece; `[overlap_start, start)` repeats the end of the piece before, or `table`
    is the one whose header it repeats."""

    start: int
    end: int
    overlap_start: int
    table: Table | None = None


class Cutter:
    """Cuts regions of one document."""

    def __init__(self, layout: Layout, tokens: TokenIndex, budget: ChunkBudget) -> None:
        self._layout = layout
        self._tokens = tokens
        self._budget = budget
        self._inner = InnerBreaks(layout, tokens)
        self._overlap_characters = budget.max_characters * budget.overlap // budget.max_tokens

    def cut(self, region: Region) -> list[Piece]:
        """Pieces in order that together hold all of the region but white space at their ends."""
        start, end = self._layout.trim(region.start, region.end)
        spans = self._merge_small(self._spans(region, start, end), start, region)
        return [self._piece(region, a, b, first=a == start) for a, b in spans]

    def halve(self, region: Region, piece: Piece) -> list[Piece]:
        """A piece that turned out to be over the budget, in two; or the piece itself if it cannot be divided."""
        if piece.end - piece.start < 2:
            return [piece]
        middle = self._choose(region, piece.start, piece.end, 0, (piece.end - piece.start) // 2)
        spans = [self._layout.trim(piece.start, middle), self._layout.trim(middle, piece.end)]
        return [Piece(a, b, a, piece.table if a == piece.start else self._table_at(a)) for a, b in spans if a < b]

    def _spans(self, region: Region, start: int, end: int) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        stack = [(start, end)]
        while stack:
            a, b = self._layout.trim(*stack.pop())
            if a >= b:
                continue
            tokens, characters = self._room(region, a, first=a == start)
            fits = self._tokens.count(a, b) <= tokens and b - a <= characters
            if fits or b - a < 2:
                spans.append((a, b))
            else:
                cut = self._choose(region, a, b, tokens, characters)
                stack += ((cut, b), (a, cut))
        return spans

    def _room(self, region: Region, start: int, *, first: bool) -> tuple[int, int]:
        """Tokens and characters that a piece starting here may add to what it repeats."""
        budget = self._budget
        if first:
            return budget.max_tokens, budget.max_characters
        if table := self._table_at(start):
            header = self._tokens.count(table.start, table.header_end)
            return budget.max_tokens - header, budget.max_characters - (table.header_end - table.start + 1)
        if region.whole_units and self._layout.starts_unit(start):
            return budget.max_tokens, budget.max_characters
        return budget.max_tokens - budget.overlap, budget.max_characters - self._overlap_characters

    def _table_at(self, position: int) -> Table | None:
        table = self._layout.table_at(position)
        if table is None:
            return None
        header = self._tokens.count(table.start, table.header_end)
        affordable = 2 * header <= self._budget.max_tokens
        return table if affordable and 2 * (table.header_end - table.start) <= self._budget.max_characters else None

    def _choose(self, region: Region, a: int, b: int, tokens: int, characters: int) -> int:
        low, high = self._fair_span(a, b, tokens, characters)
        layout = self._layout
        for tier in (layout.headings, layout.paragraphs, layout.items):
            if (cut := tier.first(low, high)) is not None:
                return cut
        if region.whole_units:
            for tier in (layout.headings, layout.paragraphs, layout.items):
                if (cut := tier.first(a + 1, b - 1)) is not None:
                    return cut
        for name in ("sentences", "lines", "words"):
            tier: Candidates = getattr(layout, name)
            if (cut := tier.first(low, high)) is not None:
                return cut
        return self._inner.first(a, b, low, high)

    def _fair_span(self, a: int, b: int, tokens: int, characters: int) -> tuple[int, int]:
        first, last = self._tokens.span(a, b)
        if tokens and (last - first) * characters >= (b - a) * tokens and last - first > tokens:
            part = max(1, int(_FAIR_PART * tokens))
            low, high = self._tokens.start(first + part), self._tokens.start(last - part)
        else:
            part = max(1, int(_FAIR_PART * characters))
            low, high = a + part, b - part
        low, high = max(low, a + 1), min(high, b - 1)
        return (low, high) if low <= high else (a + 1, b - 1)

    def _merge_small(self, spans: list[tuple[int, int]], start: int, region: Region) -> list[tuple[int, int]]:
        """Join a span under the minimum to the one after it, else to the one before, where the two fit."""
        merged: list[tuple[int, int]] = []
        for span in spans:
            if merged:
                before = merged[-1]
                small = self._is_small(before) or self._is_small(span)
                tokens, characters = self._room(region, before[0], first=before[0] == start)
                if small and self._tokens.count(before[0], span[1]) <= tokens and span[1] - before[0] <= characters:
                    merged[-1] = (before[0], span[1])
                    continue
            merged.append(span)
        return merged

    def _is_small(self, span: tuple[int, int]) -> bool:
        return self._tokens.count(*span) < self._budget.min_tokens

    def _piece(self, region: Region, a: int, b: int, *, first: bool) -> Piece:
        if first:
            return Piece(a, b, a)
        if table := self._table_at(a):
            return Piece(a, b, a, table)
        return Piece(a, b, self._overlap_start(region, a))

    def _overlap_start(self, region: Region, start: int) -> int:
        """The first clean place within reach before `start`: a sentence, else a word, else any cluster."""
        layout = self._layout
        if region.whole_units:
            if layout.starts_unit(start):
                return start
            floor = layout.unit_at(start).start
        else:
            floor = layout.overlap_floor(start)
        reach = self._tokens.start(max(0, self._tokens.span(0, start)[1] - self._budget.overlap))
        low = max(region.start, floor, reach, start - self._overlap_characters)
        for positions in (layout.overlap_starts, layout.words.positions):
            index = rank(positions, low)
            if index < len(positions) and positions[index] < start:
                return int(positions[index])
        cluster = layout.graphemes.nearest(low, low, start)
        return start if cluster is None else layout.trim(cluster, start)[0]
