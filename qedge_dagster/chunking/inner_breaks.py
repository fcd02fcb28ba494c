"""Cuts inside a word, for text without white space: between grapheme clusters, at a token if possible."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from qedge_dagster.chunking.candidates import FEW, SOME, Positions, between
from qedge_dagster.chunking.layout import Layout
from qedge_dagster.chunking.token_index import TokenIndex

__all__ = ["InnerBreaks"]


class InnerBreaks:
    """Every position would be a candidate, far too many in a megabyte of base64: a few of them are, by the characters
    around them."""

    def __init__(self, layout: Layout, tokens: TokenIndex) -> None:
        self._layout = layout
        self._tokens = tokens

    def within(self, start: int, end: int) -> Positions:
        """Where `[start, end)` may be cut: the fewer places the better, but at least one."""
        for positions in (self._few, self._some):
            inner = between(positions, start + 1, end - 1)
            if len(inner):
                at_tokens = inner[self._start_tokens(inner)]
                return at_tokens if len(at_tokens) else inner
        return np.asarray([self.middle(start, end)], dtype=np.int64)

    def middle(self, start: int, end: int) -> int:
        """The cluster boundary nearest to the middle of `[start, end)`; a single cluster is cut between code points."""
        middle = (start + end) // 2
        cut = self._layout.graphemes.nearest(middle, start + 1, end - 1)
        return middle if cut is None else cut

    def _start_tokens(self, positions: Positions) -> np.ndarray:
        starts = self._tokens.starts
        if not len(starts):
            return np.zeros(len(positions), dtype=np.bool_)
        indexes = np.minimum(starts.searchsorted(positions.astype(starts.dtype)), len(starts) - 1)
        return starts[indexes] == positions

    @cached_property
    def _some(self) -> Positions:
        positions = np.flatnonzero(self._layout.rarities >= SOME)
        inside = self._layout.graphemes.inside
        return positions if inside is None else positions[~inside[positions]]

    @cached_property
    def _few(self) -> Positions:
        return self._some[self._layout.rarities[self._some] >= FEW]
