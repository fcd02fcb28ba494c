"""The chunkers by name: what each makes a region of, with everything else in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from qedge_dagster.chunking.base import ChunkBudget, ChunkDraft, Chunker, ChunkingOptions
from qedge_dagster.chunking.cutting import Region
from qedge_dagster.chunking.drafting import draft_regions
from qedge_dagster.chunking.layout import Layout
from qedge_dagster.chunking.markdown_heading import section_regions
from qedge_dagster.chunking.overflow import apply_overflow
from qedge_dagster.chunking.token_index import TokenIndex
from qedge_dagster.chunking.tokenizer import Tokenizer
from qedge_dagster.documents import ExtractedDocument

__all__ = ["AutoChunker", "RegionChunker", "make_chunker"]

_VERSIONS = {"token-window": 1, "plain": 1, "markdown-heading": 1}

RegionChunkerName = Literal["token-window", "plain", "markdown-heading"]


class RegionChunker:
    """`token-window` and `plain` take the whole text as one region, `markdown-heading` each section."""

    def __init__(
        self, name: RegionChunkerName, options: ChunkingOptions, budget: ChunkBudget, tokenizer: Tokenizer
    ) -> None:
        self.id = name
        self.version = _VERSIONS[name]
        self._options = options
        self._budget = budget
        self._tokenizer = tokenizer

    def recipe_fields(self) -> tuple[object, ...]:
        fields = (*self._budget.recipe_fields(), self._options.overflow)
        if self.id == "markdown-heading":
            return (*fields, *sorted(set(self._options.split_levels)))
        return fields

    def chunk(self, document: ExtractedDocument, warn: Callable[[str], None]) -> list[ChunkDraft]:
        """See `Chunker.chunk`."""
        if not document.text.strip():
            return []
        layout = Layout(document)
        if not layout.units:  # invisible characters alone
            return []
        tokens = TokenIndex(document.text, self._tokenizer)
        regions = self._regions(layout, tokens)
        regions = apply_overflow(self._options.overflow, regions, layout, tokens, self._budget, warn)
        return draft_regions(layout, tokens, regions, self._tokenizer, self._budget)

    def _regions(self, layout: Layout, tokens: TokenIndex) -> Sequence[Region]:
        if self.id == "markdown-heading":
            return section_regions(layout, tokens, self._budget, frozenset(self._options.split_levels))
        return [Region(0, len(layout.text), whole_units=self.id == "plain")]


class AutoChunker:
    """`markdown-heading` for a document with headings, else `plain`."""

    id = "auto"
    version = 1

    def __init__(self, options: ChunkingOptions, budget: ChunkBudget, tokenizer: Tokenizer) -> None:
        self._by_heading = RegionChunker("markdown-heading", options, budget, tokenizer)
        self._plain = RegionChunker("plain", options, budget, tokenizer)

    def recipe_fields(self) -> tuple[object, ...]:
        """Of both: which one is used depends on the document alone."""
        parts = (self._by_heading, self._plain)
        return tuple(field for part in parts for field in (part.id, part.version, *part.recipe_fields()))

    def chunk(self, document: ExtractedDocument, warn: Callable[[str], None]) -> list[ChunkDraft]:
        """See `Chunker.chunk`."""
        has_headings = any(block.kind == "heading" for block in document.blocks)
        return (self._by_heading if has_headings else self._plain).chunk(document, warn)


def make_chunker(options: ChunkingOptions, budget: ChunkBudget, tokenizer: Tokenizer) -> Chunker:
    """The chunker that `options` names, with the budget that was resolved from the same options."""
    if options.chunker == "auto":
        return AutoChunker(options, budget, tokenizer)
    return RegionChunker(options.chunker, options, budget, tokenizer)
