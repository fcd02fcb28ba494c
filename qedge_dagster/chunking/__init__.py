"""Documents to chunks that fit the model, and that an edit disturbs as little as possible."""

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
