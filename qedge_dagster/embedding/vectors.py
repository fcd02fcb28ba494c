"""What every embedder does to its vectors."""

from __future__ import annotations

import numpy as np

__all__ = ["unit_length"]


def unit_length(vectors: np.ndarray) -> np.ndarray:
    """float32 of shape (texts, dimensions), each row divided by its length.

    A zero row stays zero and a non-finite one non-finite: both are refused where vectors are written.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.asarray(vectors, dtype=np.float64)  # a float32 square overflows from 1e19 on
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
        return np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths != 0).astype(np.float32)
