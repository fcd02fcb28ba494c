"""Where the tokens of a document start, from one encode."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qedge_dagster.chunking.candidates import Positions, rank
from qedge_dagster.chunking.tokenizer import Tokenizer

__all__ = ["TokenIndex"]

_SLICE_CHARACTERS = 16 * 1024


class TokenIndex:
    """Counts tokens between two positions by looking up, without encoding again.

    The count is exact where white space delimits the span and never takes part in a token; elsewhere it is an estimate.

    A long text is encoded in slices that end at a line break, or at least at white space, so that what the tokenizer
    makes of each token (over 100 bytes) never exists for all of it. Smaller slices are also faster.
    """

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        parts: list[npt.NDArray[np.int32]] = []
        start = 0
        while start < len(text):
            stop = _slice_end(text, start)
            parts.append((tokenizer.offsets(text[start:stop])[:, 0] + start).astype(np.int32))
            start = stop
        starts = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)
        self.starts = np.maximum.accumulate(starts, out=starts)
        self._length = len(text)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Indexes of the first token that starts in `[start, end)`, and of the one after the last."""
        return rank(self.starts, start), rank(self.starts, end)

    def count(self, start: int, end: int) -> int:
        first, last = self.span(start, end)
        return last - first

    def indexes(self, positions: Positions) -> npt.NDArray[np.int64]:
        """For each position the number of tokens that start before it."""
        return self.starts.searchsorted(positions.astype(np.int32))

    def start(self, index: int) -> int:
        """Position of the token; the end of the text for the one after the last."""
        return int(self.starts[index]) if index < len(self.starts) else self._length


def _slice_end(text: str, start: int) -> int:
    stop = start + _SLICE_CHARACTERS
    if stop >= len(text):
        return len(text)
    for white in "\n ":
        if (end := text.rfind(white, start, stop)) > start:
            return end
    return stop
