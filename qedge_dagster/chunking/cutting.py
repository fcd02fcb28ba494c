"""Cutting a region of text into pieces that keep the budget, at places that the text itself determines.

The region falls into atoms: its units, or what is left of a unit over the budget after cutting it at every sentence,
else at every line, at every word. Then cuts between atoms are dropped where the two pieces that they part fit the budget
together, weak cuts (between words) before strong ones (between paragraphs). Of equals a hash of the text behind each cut
decides: the further away the next cut with a smaller hash is, the longer a cut stays, and one that is first within most
of a budget always stays. So which cuts remain depends on nearby text alone, and two versions of a document share all
that are not close to an edit. (Filling one window after the other instead would move every cut behind an edit.)
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

    def _atoms(self, region: Region, start: int, end: int) -> _Atoms:
        """Spans that fit the budget by themselves, as coarse as possible."""
        layout = self._layout
        tiers = (layout.headings, layout.paragraphs, layout.items, layout.sentences, layout.lines, layout.words)
        atoms = self._measure(region, np.asarray([start]), np.zeros(1, dtype=np.int64), end)
        for strength, tier in zip(range(len(tiers), 0, -1), tiers, strict=True):
            if atoms.fit.all():
                return atoms
            cuts = between(tier, start + 1, end - 1)
            holders = atoms.starts.searchsorted(cuts, "right") - 1
            cuts = cuts[~atoms.fit[holders] & (cuts != atoms.starts[holders])]
            atoms = self._cut_at(region, atoms, cuts, strength, end)
        if not atoms.fit.all():
            spans = [(int(atoms.starts[i]), int(atoms.ends[i])) for i in np.flatnonzero(~atoms.fit)]
            inner = [self._inner.within(a, b) for a, b in spans]
            atoms = self._cut_at(region, atoms, np.concatenate(inner), 0, end)
        while not (small := atoms.fit | (atoms.ends - atoms.starts < 2)).all():
            spans = [(int(atoms.starts[i]), int(atoms.ends[i])) for i in np.flatnonzero(~small)]
            middles = [self._inner.middle(a, b) for a, b in spans]
            atoms = self._cut_at(region, atoms, np.asarray(middles, dtype=np.int64), 0, end)
        return atoms

    def _cut_at(self, region: Region, atoms: _Atoms, cuts: Positions, strength: int, end: int) -> _Atoms:
        starts = np.concatenate((atoms.starts, cuts))
        strengths = np.concatenate((atoms.strengths, np.full(len(cuts), strength)))
        order = starts.argsort(kind="stable")
        return self._measure(region, starts[order], strengths[order], end)

    def _measure(self, region: Region, starts: Positions, strengths: Positions, end: int) -> _Atoms:
        ends = self._layout.trimmed_ends(starts, np.append(starts[1:], end))
        shown = ends > starts
        starts, ends, strengths = starts[shown], ends[shown], strengths[shown]
        first, last = self._tokens.indexes(starts), self._tokens.indexes(ends)
        tokens, characters = self._rooms(region, starts)
        fit = (last - first <= tokens) & (ends - starts <= characters)
        return _Atoms(starts, ends, strengths, first, last, tokens, characters, fit)

    def _join(self, atoms: _Atoms) -> list[tuple[int, int]]:
        """Drop the cuts that are not needed."""
        budget = self._budget
        order, fixed = self._order(atoms)
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
            if not fixed[cut] or smaller < budget.min_tokens:
                kept[cut] = False
                head_of[tail], tail_of[head] = head, tail
        return [(starts[head], ends[tail_of[head]]) for head, keep in enumerate(kept) if keep]

    def _order(self, atoms: _Atoms) -> tuple[list[int], list[bool]]:
        """The cuts before all atoms but the first, in the order in which to drop them, and which ones are to stay."""
        budget = self._budget
        hashes = context_hashes(self._layout.codes, atoms.starts)
        precedence = np.empty(len(hashes), dtype=np.int64)
        precedence[np.lexsort((hashes, -atoms.strengths))] = np.arange(len(hashes))
        room = budget.max_tokens if atoms.whole_units else budget.max_tokens - budget.overlap
        loads = np.maximum((atoms.last - atoms.first) / room, (atoms.ends - atoms.starts) / budget.max_characters)
        reaches = _reaches(precedence, np.concatenate(([0.0], loads.cumsum())))
        order = np.lexsort((-precedence, reaches, atoms.strengths))
        return order[order > 0].tolist(), (reaches >= _FIXED_REACH).tolist()

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
