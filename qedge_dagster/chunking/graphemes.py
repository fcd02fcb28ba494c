"""Grapheme clusters: what a reader takes for one character, and no cut may break."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import regex

from qedge_dagster.chunking.candidates import Codes, Positions, one_of

__all__ = ["Graphemes"]

# A boundary is certain between two characters unless the right one extends to the left or the left one to the right.
_EXTENDS_LEFT = regex.compile(r"[\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}\p{GCB=V}\p{GCB=T}]")
_EXTENDS_RIGHT = regex.compile(r"[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=Prepend}\p{GCB=L}\p{GCB=Regional_Indicator}]")
_CLUSTER = regex.compile(r"\X")
_CONTROL = regex.compile(r"\p{GCB=Control}|\p{GCB=CR}|\p{GCB=LF}")


class Graphemes:
    """The cluster boundaries of one text."""

    def __init__(self, text: str, codes: Codes) -> None:
        self._text = text
        self._codes = codes
        used = () if text.isascii() else {c for c in set(text) if c > "\x7f"}
        self._left = frozenset(c for c in used if _EXTENDS_LEFT.match(c))
        self._right = frozenset(c for c in used if _EXTENDS_RIGHT.match(c))
        self._simple = not self._left and not self._right and "\r" not in text

    @cached_property
    def inside(self) -> npt.NDArray[np.bool_] | None:
        """For each position whether it lies inside a cluster; None where every position is a boundary."""
        if self._simple:
            return None
        left = frozenset(map(ord, self._left | {"\n"}))
        right = frozenset(map(ord, self._right | {"\r"}))
        inside = np.zeros(len(self._codes) + 1, dtype=np.bool_)
        inside[1:-1] = one_of(self._codes[1:], left) | one_of(self._codes[:-1], right)
        edges = np.flatnonzero(np.diff(inside.astype(np.int8), prepend=0, append=0))
        for start, stop in edges.reshape(-1, 2).tolist():  # the boundaries before `start` and at `stop` are certain
            inside[[match.end() for match in _CLUSTER.finditer(self._text, start - 1, stop)]] = False
        return inside

    def breaks_at(self, position: int) -> bool:
        return self.inside is None or not self.inside[position]

    def nearest(self, position: int, low: int, high: int) -> int | None:
        """The boundary in `[low, high]` nearest to `position`."""
        if self.inside is None:
            return min(max(position, low), high)
        if not self.inside[position]:
            return position
        for reach in (64, high - low + 1):
            start, stop = max(low, position - reach), min(high, position + reach) + 1
            found = start + np.flatnonzero(~self.inside[start:stop])
            if len(found):
                return int(found[np.abs(found - position).argmin()])
        return None

    def clean_starts(self, positions: Positions) -> Positions:
        """Those of `positions` whose character does not extend the one before it."""
        if not self._left:
            return positions
        return positions[~one_of(self._codes[positions], frozenset(map(ord, self._left)))]

    def keeps_space_before(self, position: int) -> bool:
        """Whether the white space before `position` carries the mark that stands there."""
        return position > 0 and self._text[position] in self._left and not _CONTROL.match(self._text[position - 1])

    def keeps_space_after(self, position: int) -> bool:
        """Whether the white space at `position` belongs to a sign before it that prepends to what follows."""
        return (
            bool(self._right)
            and 0 < position < len(self._text)
            and self._text[position - 1] in self._right
            and not self.breaks_at(position)
        )
