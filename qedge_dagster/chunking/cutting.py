"""Cutting a region of text into pieces that keep the budget, at places that the text itself determines.

The region falls into atoms: its units, or what is left of a unit over the budget after cutting it at every sentence,
else at every word. Then the cuts between atoms are gone through, weak ones (between words) before strong ones (between
paragraphs), and equals in the order of a hash of the text around them. A cut is dropped if the two pieces that it parts
fit the budget together. So pieces are well filled: no two neighbours would fit into one. And since the order depends on
nearby text alone, two versions of a document share all the cuts that are not close to an edit. (Filling one window
after the other instead would move every cut behind an edit.)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from qedge_dagster.chunking.base import ChunkBudget
from qedge_dagster.chunking.candidates import between, context_hashes, rank
from qedge_dagster.chunking.inner_breaks import InnerBreaks
from qedge_dagster.chunking.layout import Layout, Table
from qedge_dagster.chunking.token_index import TokenIndex

__all__ = ["Cutter", "Piece", "Region"]


@dataclass(frozen=True, slots=True)
class Region:
    """Text that is chunked by itself. With `whole_units`, text is repeated only after a cut inside a unit."""

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
        spans = self._join(region, *self._atoms(region, start, end)) if start < end else []
        return [self._piece(region, a, b, first=a == start) for a, b in spans]

    def halve(self, piece: Piece) -> list[Piece]:
        """A piece that turned out to be over the budget, in two; or the piece itself if it cannot be divided."""
        if piece.end - piece.start < 2:
            return [piece]
        words = between(self._layout.words, piece.start + 1, piece.end - 1)
        middle = self._inner.middle(piece.start, piece.end)
        if len(words):
            middle = int(words[np.abs(words - middle).argmin()])
        spans = [self._layout.trim(piece.start, middle), self._layout.trim(middle, piece.end)]
        return [Piece(a, b, a, piece.table if a == piece.start else self._table_at(a)) for a, b in spans if a < b]

    def _atoms(self, region: Region, start: int, end: int) -> tuple[list[tuple[int, int]], list[int]]:
        """Spans that fit the budget, in order, and for each the strength of the cut before it."""
        layout = self._layout
        tiers = (layout.headings, layout.paragraphs, layout.items, layout.sentences, layout.lines, layout.words)
        atoms: list[tuple[int, int, int]] = []
        pending = [(start, end, 0, 0)]  # span, strength of the cut before it, next tier to cut it at
        while pending:
            a, b, strength, tier = pending.pop()
            a, b = layout.trim(a, b)
            if a >= b:
                continue
            if self._fits(region, a, b, first=a == start) or b - a < 2:
                atoms.append((a, b, strength))
                continue
            if tier < len(tiers):
                cuts, strength_inside = between(tiers[tier], a + 1, b - 1), len(tiers) - tier
            else:
                cuts, strength_inside = self._inner.within(a, b), 0
            if tier > len(tiers) or (tier == len(tiers) and not len(cuts)):
                cuts = np.asarray([self._inner.middle(a, b)], dtype=np.int64)
            edges = [a, *cuts.tolist(), b]
            parts = list(pairwise(edges))
            later = [(x, y, strength_inside, tier + 1) for x, y in parts[1:]]
            pending += reversed([(*parts[0], strength, tier + 1), *later])
        return [(a, b) for a, b, _ in atoms], [strength for *_, strength in atoms]

    def _join(self, region: Region, atoms: list[tuple[int, int]], strengths: list[int]) -> list[tuple[int, int]]:
        """Drop the cuts that are not needed, the weakest and those of the largest hash first."""
        starts = np.asarray([a for a, _ in atoms], dtype=np.int64)
        hashes = context_hashes(self._layout.codes, starts)
        order = np.lexsort((starts, ~hashes, np.asarray(strengths)))
        first_of = list(range(len(atoms)))  # for the last atom of a piece, its first
        last_of = list(range(len(atoms)))  # for the first atom of a piece, its last
        kept = [True] * len(atoms)
        for cut in order.tolist():
            if cut == 0:
                continue
            left, last = first_of[cut - 1], last_of[cut]
            if self._fits(region, atoms[left][0], atoms[last][1], first=left == 0):
                kept[cut] = False
                first_of[last], last_of[left] = left, last
        heads = [index for index, keep in enumerate(kept) if keep]
        return [(atoms[head][0], atoms[last_of[head]][1]) for head in heads]

    def _fits(self, region: Region, a: int, b: int, *, first: bool) -> bool:
        tokens, characters = self._room(region, a, first=first)
        return b - a <= characters and self._tokens.count(a, b) <= tokens

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
        for positions in (layout.overlap_starts, layout.words):
            index = rank(positions, low)
            if index < len(positions) and positions[index] < start:
                return int(positions[index])
        cluster = layout.graphemes.nearest(low, low, start)
        return start if cluster is None else layout.trim(cluster, start)[0]
