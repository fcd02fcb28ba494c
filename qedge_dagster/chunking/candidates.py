"""Places where a text may be cut, ordered by a hash of the text around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Candidates", "Codes", "Positions", "mix", "rank"]

Codes = npt.NDArray[Any]
"""Code points of a text, in the narrowest unsigned type that holds them."""

Positions = npt.NDArray[np.int64]

_CONTEXT = 32  # characters on either side, about eight tokens
_BLOCK = 128
_LAST = np.uint64(0xFFFFFFFFFFFFFFFF)


def mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64: spreads every input bit over the whole word."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


_WINDOW = np.arange(-_CONTEXT, _CONTEXT)
_WEIGHTS = mix(np.arange(1, 2 * _CONTEXT + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)


def rank(ascending: npt.NDArray[Any], value: int, side: str = "left") -> int:
    """`searchsorted` for one value. The value is cast to the array's type: otherwise the whole array would be."""
    return int(ascending.searchsorted(ascending.dtype.type(value), side))  # type: ignore[arg-type]


class Candidates:
    """Positions in ascending order, of which `first` finds the one with the smallest hash within a span.

    The hash depends on the text around a position and on nothing else, so an edit elsewhere does not change the order.
    Hashes are computed in blocks when first asked for, and each block remembers its smallest: a query costs the same
    however the hashes are arranged.
    """

    def __init__(self, positions: Positions, codes: Codes) -> None:
        self.positions = positions
        self._codes = codes
        blocks = -(-len(positions) // _BLOCK)
        self._hashes = np.full(blocks * _BLOCK, _LAST)
        self._minima = np.full(blocks, _LAST)
        self._done = np.zeros(blocks, dtype=np.bool_)

    def first(self, low: int, high: int) -> int | None:
        """The position in `[low, high]` with the smallest hash; of equals, the one closest to the middle.

        The middle keeps the recursion shallow over text that repeats itself.
        """
        start = rank(self.positions, low)
        stop = rank(self.positions, high, "right")
        if start >= stop:
            return None
        positions = self.positions[self._smallest(start, stop)]
        if len(positions) == 1:
            return int(positions[0])
        return int(positions[np.abs(2 * positions - (low + high)).argmin()])

    def within(self, low: int, high: int) -> Positions:
        """All positions in `[low, high]`."""
        return self.positions[rank(self.positions, low) : rank(self.positions, high, "right")]

    def _smallest(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        head, tail = start // _BLOCK, (stop - 1) // _BLOCK
        self._hash_blocks(head, tail + 1)
        if tail - head < 3:
            hashes = self._hashes[start:stop]
            return start + np.flatnonzero(hashes == hashes.min())
        inner_start, inner_stop = (head + 1) * _BLOCK, tail * _BLOCK
        edges = np.concatenate((np.arange(start, inner_start), np.arange(inner_stop, stop)))
        minima = self._minima[head + 1 : tail]
        smallest = min(self._hashes[edges].min(), minima.min())
        blocks = head + 1 + np.flatnonzero(minima == smallest)
        inside = (blocks[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
        indexes = np.concatenate((edges, inside))
        return indexes[self._hashes[indexes] == smallest]

    def _hash_blocks(self, start: int, stop: int) -> None:
        if self._done[start:stop].all():
            return
        for block in start + np.flatnonzero(~self._done[start:stop]):
            positions = self.positions[block * _BLOCK : (block + 1) * _BLOCK]
            around = np.take(self._codes, positions[:, None] + _WINDOW, mode="clip")
            hashes = mix((around.astype(np.uint64) * _WEIGHTS).sum(axis=1, dtype=np.uint64))
            self._hashes[block * _BLOCK : block * _BLOCK + len(positions)] = hashes
            self._minima[block] = hashes.min()
            self._done[block] = True
