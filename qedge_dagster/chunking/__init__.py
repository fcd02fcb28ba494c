"""Documents to chunks that fit the model, and that an edit disturbs as little as possible.

Names are loaded on first use: to embed a question takes the tokenizer alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qedge_dagster.lazy import names_of

if TYPE_CHECKING:
    from qedge_dagster.chunking.base import ChunkBudget, ChunkDraft, Chunker, ChunkingOptions
    from qedge_dagster.chunking.chunkers import make_chunker
    from qedge_dagster.chunking.tokenizer import HuggingFaceTokenizer, Tokenizer

__all__ = [
    "ChunkBudget",
    "ChunkDraft",
    "Chunker",
    "ChunkingOptions",
    "HuggingFaceTokenizer",
    "Tokenizer",
    "make_chunker",
]

_HOMES = {
    "ChunkBudget": "base",
    "ChunkDraft": "base",
    "Chunker": "base",
    "ChunkingOptions": "base",
    "HuggingFaceTokenizer": "tokenizer",
    "Tokenizer": "tokenizer",
    "make_chunker": "chunkers",
}

__getattr__ = names_of(__name__, _HOMES)
