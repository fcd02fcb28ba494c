"""Where the tokens of a document start, from one encode."""

from __future__ import annotations

import numpy as np

from qedge_dagster.chunking.candidates import Positions, rank
from qedge_dagster.chunking.tokenizer import Tokenizer

__all__ = ["TokenIndex"]


class TokenIndex:
    """Counts tokens between two positions by looking up, without encoding again.

    The count is exact where white space delimits the span and never takes part in a token; elsewhere it is an estimate.
    """

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        starts = tokenizer.offsets(text)[:, 0]
        self._starts = np.maximum.accumulate(starts) if len(starts) else starts
        self._length = len(text)

    @property
    def starts(self) -> np.ndarray:
        return self._starts

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Indexes of the first token that starts in `[start, end)`, and of the one after the last."""
        return rank(self._starts, start), rank(self._starts, end)

    def count(self, start: int, end: int) -> int:
        first, last = self.span(start, end)
        return last - first

    def indexes(self, positions: Positions) -> Positions:
        """For each position the number of tokens that start before it."""
        return self._starts.searchsorted(positions.astype(self._starts.dtype))

    def start(self, index: int) -> int:
        """Position of the token; the end of the text for the one after the last."""
        return int(self._starts[index]) if index < len(self._starts) else self._length
