"""Cutting a region of text into pieces that keep the budget, at places that the text itself determines.

The region falls into atoms: its units, or what is left of a unit over the budget after cutting it at every sentence,
else at every line, at every word. Then cuts between atoms are dropped where the two pieces that they part fit the
budget together, weak cuts (between words) before strong ones (between paragraphs). Of equals a hash of the text behind
each cut decides: the further away the next cut with a smaller hash is, the longer a cut stays, and one that is first
within a whole budget always stays. So which cuts remain depends on nearby text alone, and two versions of a document
share all that are not close to an edit. (Filling one window after the other would move every cut behind an edit.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np
import numpy.typing as npt

from qedge_dagster.chunking.base import ChunkBudget
from qedge_dagster.chunking.candidates import Positions, between, context_hashes, rank
from qedge_dagster.chunking.inner_breaks import InnerBreaks
from qedge_dagster.chunking.layout import Layout, Table
from qedge_dagster.chunking.token_index import TokenIndex

__all__ = ["Cutter", "Piece", "Region"]

#: In budgets. A cut that is first among all within this distance is never dropped: it stops the effect of an edit from
#: travelling on. Lower, an edit costs less and pieces are smaller.
_FIXED_REACH = 1.0


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


@dataclass(frozen=True, slots=True)
class _Atoms:
    """Spans of a region in order, as arrays: `first` and `last` delimit their tokens, `tokens` and `characters` are the
    room of a piece that starts with the atom, `strengths` are those of the cuts before them."""

    starts: Positions
    ends: Positions
    strengths: Positions
    first: Positions
    last: Positions
    tokens: Positions
    characters: Positions

    @property
    def over(self) -> npt.NDArray[np.bool_]:
        """Those over the budget that can be cut."""
        too_long = (self.last - self.first > self.tokens) | (self.ends - self.starts > self.characters)
        return too_long & (self.ends - self.starts > 1)


class Cutter:
    """Cuts regions of one document."""

    def __init__(self, layout: Layout, tokens: TokenIndex, budget: ChunkBudget) -> None:
        self._layout = layout
        self._tokens = tokens
        self._budget = budget
        self._inner = InnerBreaks(layout, tokens)
        self._overlap_characters = budget.max_characters * budget.overlap // budget.max_tokens
        self._tables = [table for table in layout.tables if self._affords(table)]

    def cut(self, region: Region) -> list[Piece]:
        """Pieces in order that together hold all of the region but white space at their ends."""
        start, end = self._layout.trim(region.start, region.end)
        if start >= end:
            return []
        if self._tokens.count(start, end) <= self._budget.max_tokens and end - start <= self._budget.max_characters:
            return [Piece(start, end, start)]
        pieces: list[Piece] = []
        starts = self._join(region, self._atoms(region, start, end))
        for a, b in pairwise([*starts, end]):
            a, b = self._layout.trim(a, b)
            table = None if a == start else self._table_at(a)
            overlap_start = a if a == start or table else self._overlap_start(region, pieces[-1], a)
            pieces.append(Piece(a, b, overlap_start, table))
        return pieces

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

    # -- atoms -----------------------------------------------------------------------------------------------------

    def _atoms(self, region: Region, start: int, end: int) -> _Atoms:
        """Spans that fit the budget by themselves, as coarse as possible."""
        atoms = self._measure(region, np.asarray([start]), np.zeros(1, dtype=np.int64), end)
        tiers = ("headings", "paragraphs", "items", "sentences", "lines", "some_words", "words")
        for strength, tier in zip(range(len(tiers), 0, -1), tiers, strict=True):
            if not atoms.over.any():
                return atoms
            cuts = between(getattr(self._layout, tier), start + 1, end - 1).astype(np.int64)
            holders = atoms.starts.searchsorted(cuts, "right") - 1
            cuts = cuts[atoms.over[holders] & (cuts != atoms.starts[holders])]
            atoms = self._cut_at(region, atoms, cuts, strength, end)
        while (over := atoms.over).any():
            spans = zip(atoms.starts[over].tolist(), atoms.ends[over].tolist(), strict=True)
            atoms = self._cut_at(region, atoms, np.concatenate([self._inner.within(a, b) for a, b in spans]), 0, end)
        return atoms

    def _cut_at(self, region: Region, atoms: _Atoms, cuts: Positions, strength: int, end: int) -> _Atoms:
        starts = np.concatenate((atoms.starts, cuts))
        strengths = np.concatenate((atoms.strengths, np.full(len(cuts), strength)))
        order = starts.argsort(kind="stable")
        return self._measure(region, starts[order], strengths[order], end)

    def _measure(self, region: Region, starts: Positions, strengths: Positions, end: int) -> _Atoms:
        ends = self._layout.trimmed_ends(np.append(starts[1:], end))
        shown = ends > starts
        starts, ends, strengths = starts[shown], ends[shown], strengths[shown]
        first, last = self._tokens.indexes(starts), self._tokens.indexes(ends)
        return _Atoms(starts, ends, strengths, first, last, *self._rooms(region, starts))

    def _rooms(self, region: Region, starts: Positions) -> tuple[Positions, Positions]:
        """Tokens and characters that a piece may add to what it repeats, for each place where it may start."""
        budget = self._budget
        tokens = np.full(len(starts), budget.max_tokens - budget.overlap)
        characters = np.full(len(starts), budget.max_characters - self._overlap_characters)
        unrepeated = starts == starts[0]
        if region.whole_units:
            unrepeated |= self._layout.starting_units(starts)
        tokens[unrepeated], characters[unrepeated] = budget.max_tokens, budget.max_characters
        for table in self._tables:
            if table.header_end < starts[-1] and starts[0] < table.end:
                rows = slice(max(1, rank(starts, table.header_end, "right")), rank(starts, table.end))
                tokens[rows] = budget.max_tokens - self._tokens.count(table.start, table.header_end)
                characters[rows] = budget.max_characters - (table.header_end - table.start + 1)
        return tokens, characters

    # -- pieces ----------------------------------------------------------------------------------------------------

    def _join(self, region: Region, atoms: _Atoms) -> list[int]:
        """Drop the cuts that are not needed; returns where the pieces start."""
        order, fixed = self._order(region, atoms)
        starts, ends = atoms.starts.tolist(), atoms.ends.tolist()
        first, last = atoms.first.tolist(), atoms.last.tolist()
        tokens, characters = atoms.tokens.tolist(), atoms.characters.tolist()
        head_of = list(range(len(starts)))  # for the last atom of a piece, its first
        tail_of = list(range(len(starts)))  # for the first atom of a piece, its last
        kept = [True] * len(starts)
        for cut in order:
            head, tail = head_of[cut - 1], tail_of[cut]
            if last[tail] - first[head] > tokens[head] or ends[tail] - starts[head] > characters[head]:
                continue
            smaller = min(last[cut - 1] - first[head], last[tail] - first[cut])
            if not fixed[cut] or smaller < self._budget.min_tokens:
                kept[cut] = False
                head_of[tail], tail_of[head] = head, tail
        return [start for start, keep in zip(starts, kept, strict=True) if keep]

    def _order(self, region: Region, atoms: _Atoms) -> tuple[list[int], list[bool]]:
        """The cuts before all atoms but the first, in the order in which to drop them, and which of all are fixed."""
        budget = self._budget
        hashes = context_hashes(self._layout.codes, atoms.starts)
        precedence = np.empty(len(hashes), dtype=np.int64)
        precedence[np.lexsort((hashes, -atoms.strengths))] = np.arange(len(hashes))
        room = budget.max_tokens if region.whole_units else budget.max_tokens - budget.overlap
        loads = np.maximum((atoms.last - atoms.first) / room, (atoms.ends - atoms.starts) / budget.max_characters)
        reaches = np.asarray(_reaches(precedence.tolist(), [0.0, *loads.cumsum().tolist()]))
        order = np.lexsort((-precedence, reaches, atoms.strengths))
        return order[order > 0].tolist(), (reaches >= _FIXED_REACH).tolist()

    # -- what a piece repeats --------------------------------------------------------------------------------------

    def _table_at(self, position: int) -> Table | None:
        table = self._layout.table_at(position)
        return table if table and self._affords(table) else None

    def _affords(self, table: Table) -> bool:
        """Whether the header takes at most half of the budget."""
        tokens = self._tokens.count(table.start, table.header_end)
        characters = table.header_end - table.start
        return 2 * tokens <= self._budget.max_tokens and 2 * characters <= self._budget.max_characters

    def _overlap_start(self, region: Region, before: Piece, start: int) -> int:
        """The first clean place within reach before `start`: a sentence, else a word, else any cluster. Never so far
        back that all of the piece before is repeated."""
        layout = self._layout
        if region.whole_units:
            if layout.starts_unit(start):
                return start
            floor = layout.unit_at(start).start
        else:
            floor = layout.overlap_floor(start)
        reach = self._tokens.start(max(0, self._tokens.span(0, start)[1] - self._budget.overlap))
        low = max(before.start + 1, floor, reach, start - self._overlap_characters)
        for positions in (layout.overlap_starts, layout.words):
            index = rank(positions, low)
            if index < len(positions) and positions[index] < start:
                return int(positions[index])
        if low >= start or (cluster := layout.graphemes.nearest(low, low, start)) is None:
            return start
        return layout.trim(cluster, start)[0]


def _reaches(precedence: Sequence[int], positions: Sequence[float]) -> list[float]:
    """For each cut the distance to the nearest one that precedes it, on either side; the first is no cut."""
    reaches = [inf] * len(precedence)
    waiting: list[int] = []  # cuts that nothing behind them precedes so far, so in ascending precedence
    for cut in range(1, len(precedence)):
        while waiting and precedence[waiting[-1]] > precedence[cut]:
            before = waiting.pop()
            reaches[before] = min(reaches[before], positions[cut] - positions[before])
        if waiting:
            reaches[cut] = positions[cut] - positions[waiting[-1]]
        waiting.append(cut)
    return reaches
