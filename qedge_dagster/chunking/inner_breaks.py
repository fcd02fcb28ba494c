"""Cuts inside a word, for text without white space: between grapheme clusters, at a token if possible."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from qedge_dagster.chunking.candidates import Candidates, Positions
from qedge_dagster.chunking.layout import Layout
from qedge_dagster.chunking.token_index import TokenIndex

__all__ = ["InnerBreaks"]

_REACH = 3  # characters before a position, and as many from it on, that decide whether it is a candidate
_ONE_IN = 8
_SLICE = 1 << 20


class InnerBreaks:
    """Every position would be a candidate, far too many in a megabyte of base64: one in eight is, by the few
    characters around it."""

    def __init__(self, layout: Layout, tokens: TokenIndex) -> None:
        self._layout = layout
        self._tokens = tokens

    def first(self, start: int, end: int, low: int, high: int) -> int:
        """Where to cut `[start, end)`, within `[low, high]` if there is a cluster boundary.

        Where the text offers no candidate (it repeats one character, or the span is short) it is the boundary nearest
        to the middle; a single cluster is cut between code points.
        """
        for tier in (self._at_tokens, self._anywhere):
            if (cut := tier.first(low, high)) is not None:
                return cut
        middle = (low + high) // 2
        graphemes = self._layout.graphemes
        cut = graphemes.nearest(middle, low, high)
        if cut is None:
            cut = graphemes.nearest(middle, start + 1, end - 1)
        return middle if cut is None else cut

    @cached_property
    def _at_tokens(self) -> Candidates:
        positions = self._anywhere.positions
        starts = self._tokens.starts
        if not len(starts):
            return Candidates(positions[:0], self._layout.codes)
        indexes = np.minimum(starts.searchsorted(positions.astype(starts.dtype)), len(starts) - 1)
        return Candidates(positions[starts[indexes] == positions], self._layout.codes)

    @cached_property
    def _anywhere(self) -> Candidates:
        codes = self._layout.codes
        found: list[Positions] = []
        for begin in range(_REACH, len(codes) - _REACH + 1, _SLICE):
            stop = min(begin + _SLICE, len(codes) - _REACH + 1)
            hashes = np.zeros(stop - begin, dtype=np.uint32)
            for shift in range(-_REACH, _REACH):
                hashes = (hashes ^ codes[begin + shift : stop + shift].astype(np.uint32)) * np.uint32(0x9E3779B1)
                hashes ^= hashes >> np.uint32(15)
            found.append(begin + np.flatnonzero(hashes % np.uint32(_ONE_IN) == 0))
        positions = np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
        if self._layout.graphemes.inside is not None:
            positions = positions[~self._layout.graphemes.inside[positions]]
        return Candidates(positions, codes)
