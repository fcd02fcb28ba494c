"""Cuts inside a word, for text without white space: between grapheme clusters, at a token if possible."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from qedge_dagster.chunking.candidates import Positions, between
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

    def within(self, start: int, end: int) -> Positions:
        """Where `[start, end)` may be cut: at tokens, or where these are too few, anywhere between clusters."""
        inner = between(self._anywhere, start + 1, end - 1)
        starts = self._tokens.starts
        indexes = np.minimum(starts.searchsorted(inner.astype(starts.dtype)), max(0, len(starts) - 1))
        at_tokens = inner[starts[indexes] == inner] if len(starts) else inner[:0]
        return at_tokens if len(at_tokens) else inner

    def middle(self, start: int, end: int) -> int:
        """The cluster boundary nearest to the middle of `[start, end)`; a single cluster is cut between code points."""
        middle = (start + end) // 2
        cut = self._layout.graphemes.nearest(middle, start + 1, end - 1)
        return middle if cut is None else cut

    @cached_property
    def _anywhere(self) -> Positions:
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
        return positions
