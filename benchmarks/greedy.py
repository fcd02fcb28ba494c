"""The usual way to chunk, to compare with: fill one window after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from qedge_dagster.chunking import ChunkBudget, ChunkDraft, ChunkingOptions, Tokenizer
from qedge_dagster.chunking.base import embed_text
from qedge_dagster.chunking.breadcrumbs import fit_breadcrumb
from qedge_dagster.chunking.candidates import Positions, between
from qedge_dagster.chunking.cutting import Region
from qedge_dagster.chunking.layout import Layout
from qedge_dagster.chunking.markdown_heading import section_regions
from qedge_dagster.chunking.token_index import TokenIndex
from qedge_dagster.documents import ExtractedDocument

__all__ = ["GreedyChunker"]


class GreedyChunker:
    """The sections, budget and overlap of the product's own chunker, but every window as full as a break at a
    paragraph, else a sentence, else a word allows."""

    id = "greedy"
    version = 1

    def __init__(self, options: ChunkingOptions, budget: ChunkBudget, tokenizer: Tokenizer) -> None:
        self._options = options
        self._budget = budget
        self._tokenizer = tokenizer

    def recipe_fields(self) -> tuple[object, ...]:
        return self._budget.recipe_fields()

    def chunk(self, document: ExtractedDocument, warn: Callable[[str], None]) -> list[ChunkDraft]:  # noqa: ARG002
        if not document.text.strip():
            return []
        layout, tokens = Layout(document), TokenIndex(document.text, self._tokenizer)
        drafts: list[ChunkDraft] = []
        for region in section_regions(layout, tokens, self._budget, frozenset(self._options.split_levels)):
            breadcrumb = fit_breadcrumb(region.heading_path, self._budget.heading_path_token_budget, self._tokenizer)
            for start, end in self._windows(region, layout, tokens):
                text = document.text[start:end]
                drafts.append(
                    ChunkDraft(
                        ordinal=len(drafts),
                        text=text,
                        embed_text=embed_text(breadcrumb, text),
                        heading_path=region.heading_path,
                        breadcrumb=breadcrumb,
                        char_start=start,
                        char_end=end,
                        token_count=tokens.count(start, end),
                    )
                )
        return drafts

    def _windows(self, region: Region, layout: Layout, tokens: TokenIndex) -> Iterator[tuple[int, int]]:
        budget = self._budget
        start, end = layout.trim(region.start, region.end)
        while start < end:
            first, last = tokens.span(start, end)
            limit = min(tokens.start(first + budget.max_tokens), start + budget.max_characters)
            if last - first <= budget.max_tokens and end <= limit:
                yield start, end
                return
            # Past what the window repeats, or it would end where the one before did.
            fresh = tokens.start(first + budget.overlap)
            cut = _last(layout.paragraphs, fresh + 1, limit) or _last(layout.sentences, fresh + 1, limit)
            cut = cut or _last(layout.words, fresh + 1, limit) or limit
            yield layout.trim(start, cut)
            back = tokens.start(max(first + 1, tokens.span(0, cut)[1] - budget.overlap))
            repeated = between(layout.sentences, max(back, start + 1), cut)
            start = int(repeated[0]) if len(repeated) else cut


def _last(positions: Positions, low: int, high: int) -> int | None:
    found = between(positions, low, high)
    return int(found[-1]) if len(found) else None
