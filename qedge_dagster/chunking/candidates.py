"""Places where a text may be cut, and a hash of the text around each that says which to keep."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["FEW", "SOME", "Codes", "Positions", "between", "context_hashes", "one_of", "rank", "rarities"]

Codes = npt.NDArray[Any]
"""Code points of a text, in the narrowest unsigned type that holds them."""

Positions = npt.NDArray[np.signedinteger[Any]]
"""Ascending positions in a text: 32 bits wide where there may be millions."""

SOME, FEW = 1, 2
"""Rarities: one position in 8, and one in 64."""

_CONTEXT = 48  # characters, about eleven tokens
_SLICE = 1 << 14
_RARITY_SLICE = 1 << 18


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64: spreads every input bit over the whole word."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


_WINDOW = np.arange(_CONTEXT)
_WEIGHTS = _mix((_WINDOW + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)


def rank(ascending: npt.NDArray[Any], value: int, side: str = "left") -> int:
    """`searchsorted` for one value. The value is cast to the array's type: otherwise the whole array would be."""
    return int(ascending.searchsorted(ascending.dtype.type(value), side))  # type: ignore[arg-type]


def one_of(codes: Codes, wanted: frozenset[int]) -> npt.NDArray[np.bool_]:
    """For each code whether it is one of `wanted`: `numpy.isin`, without its cost for a short array."""
    table = _table(wanted, codes.dtype.itemsize)
    return table[codes] if codes.dtype.itemsize < 4 else table[np.minimum(codes, len(table) - 1)]


@lru_cache(maxsize=64)
def _table(wanted: frozenset[int], width: int) -> npt.NDArray[np.bool_]:
    size = 1 << (8 * width) if width < 4 else max(wanted, default=0) + 2
    table = np.zeros(size, dtype=np.bool_)
    table[[code for code in wanted if code < size]] = True
    return table


def between(positions: Positions, low: int, high: int) -> Positions:
    """The positions in `[low, high]`."""
    return positions[rank(positions, low) : rank(positions, high, "right")]


def context_hashes(codes: Codes, positions: Positions) -> npt.NDArray[np.uint64]:
    """A hash for each position of the text that follows and of nothing else, so that an edit elsewhere does not change
    which of two positions comes first; and an edit before the position, up to it, does not either."""
    hashes = np.empty(len(positions), dtype=np.uint64)
    for start in range(0, len(positions), _SLICE):
        window = positions[start : start + _SLICE, None] + _WINDOW
        following = np.take(codes, window, mode="clip").astype(np.uint64)
        hashes[start : start + _SLICE] = _mix((following * _WEIGHTS).sum(axis=1, dtype=np.uint64))
    return hashes


def rarities(codes: Codes) -> npt.NDArray[np.uint8]:
    """0, `SOME` or `FEW` for each position, by the six characters from it on: for text with far more places to cut than
    are needed."""
    result = np.zeros(len(codes), dtype=np.uint8)
    for begin in range(0, len(codes), _RARITY_SLICE):
        part = codes[begin : begin + _RARITY_SLICE + 5].astype(np.uint32)
        hashes = np.zeros(len(part) - 5 if len(part) > 5 else 0, dtype=np.uint32)
        for shift in range(6):
            hashes = (hashes ^ part[shift : shift + len(hashes)]) * np.uint32(0x9E3779B1)
            hashes ^= hashes >> np.uint32(15)
        result[begin : begin + len(hashes)] = (hashes % np.uint32(8) == 0) + (hashes % np.uint32(64) == 0)
    return result
