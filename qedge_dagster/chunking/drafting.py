"""Pieces to drafts: text, breadcrumb and exact token counts, and the proof that no draft breaks the budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from qedge_dagster.chunking.base import ChunkBudget, ChunkDraft, embed_text
from qedge_dagster.chunking.breadcrumbs import fit_breadcrumb, join_path
from qedge_dagster.chunking.cutting import Cutter, Piece, Region
from qedge_dagster.chunking.layout import Layout
from qedge_dagster.chunking.token_index import TokenIndex
from qedge_dagster.chunking.tokenizer import Tokenizer, separates_at_white_space
from qedge_dagster.errors import QedgeError

__all__ = ["check_drafts", "draft_regions"]

_WHITE = " \t\n\r"


@dataclass(frozen=True, slots=True)
class _Counted:
    region: Region
    piece: Piece
    text: str
    tokens: int
    embed_tokens: int


class _Writer:
    def __init__(self, layout: Layout, tokens: TokenIndex, tokenizer: Tokenizer, budget: ChunkBudget) -> None:
        self._layout = layout
        self._index = tokens
        self._tokenizer = tokenizer
        self._budget = budget
        self._breadcrumbs: dict[tuple[str, ...], tuple[str, int]] = {(): ("", 0)}

    def add_breadcrumbs(self, paths: Iterable[tuple[str, ...]]) -> None:
        """Breadcrumbs of all heading paths, with the tokens that each takes; most paths fit as they are."""
        new = list(dict.fromkeys(path for path in paths if path))
        limit = self._budget.heading_path_token_budget
        whole = [join_path(path) for path in new]
        counts = self._tokenizer.count_batch([f"{text}\n\n" for text in whole]) if new else []
        for path, text, count in zip(new, whole, counts, strict=True):
            if count > limit:
                text = fit_breadcrumb(path, limit, self._tokenizer)
                count = self._tokenizer.count(f"{text}\n\n") if text else 0
            self._breadcrumbs[path] = text, count

    def count(self, pieces: Sequence[tuple[Region, Piece]]) -> list[_Counted]:
        """Exact counts: looked up where white space delimits the piece and separates tokens, else by encoding it."""
        counted: list[_Counted | None] = []
        doubtful: list[tuple[int, Region, Piece, str]] = []
        for region, piece in pieces:
            text = self._text(piece)
            _, breadcrumb_tokens = self._breadcrumbs[region.heading_path]
            if self._is_delimited(piece):
                tokens = self._index.count(piece.overlap_start, piece.end)
                if piece.table:
                    tokens += self._index.count(piece.table.start, piece.table.header_end)
                counted.append(_Counted(region, piece, text, tokens, tokens + breadcrumb_tokens))
            else:
                doubtful.append((len(counted), region, piece, text))
                counted.append(None)
        tokens = self._tokenizer.count_batch([text for *_, text in doubtful]) if doubtful else []
        whole = self._count_embedded([(region, text) for _, region, _, text in doubtful], tokens)
        for (place, region, piece, text), own, embedded in zip(doubtful, tokens, whole, strict=True):
            counted[place] = _Counted(region, piece, text, own, embedded)
        return [c for c in counted if c is not None]

    def _count_embedded(self, texts: Sequence[tuple[Region, str]], tokens: Sequence[int]) -> list[int]:
        counts = list(tokens)
        joined = {
            index: embed_text(breadcrumb, text)
            for index, (region, text) in enumerate(texts)
            if (breadcrumb := self._breadcrumbs[region.heading_path][0])
        }
        if joined:
            for index, count in zip(joined, self._tokenizer.count_batch(list(joined.values())), strict=True):
                counts[index] = count
        return counts

    def fits(self, counted: _Counted) -> bool:
        budget = self._budget
        return (
            counted.tokens <= budget.max_tokens
            and counted.embed_tokens + budget.reserved <= budget.max_sequence_length
            and len(counted.text) <= budget.max_characters
        )

    def draft(self, ordinal: int, counted: _Counted) -> ChunkDraft:
        breadcrumb, _ = self._breadcrumbs[counted.region.heading_path]
        unit = self._layout.unit_at(counted.piece.start)
        return ChunkDraft(
            ordinal=ordinal,
            text=counted.text,
            embed_text=embed_text(breadcrumb, counted.text),
            heading_path=counted.region.heading_path,
            breadcrumb=breadcrumb,
            char_start=counted.piece.overlap_start,
            char_end=counted.piece.end,
            token_count=counted.tokens,
            kind=unit.kind,
            page=unit.page,
        )

    def _text(self, piece: Piece) -> str:
        own = self._layout.text[piece.overlap_start : piece.end]
        if piece.table is None:
            return own
        return f"{self._layout.text[piece.table.start : piece.table.header_end]}\n{own}"

    def _is_delimited(self, piece: Piece) -> bool:
        if not separates_at_white_space(self._tokenizer):
            return False
        spans = [(piece.overlap_start, piece.end)]
        if piece.table:
            spans.append((piece.table.start, piece.table.header_end))
        text = self._layout.text
        return all(
            (start == 0 or text[start - 1] in _WHITE) and (end == len(text) or text[end] in _WHITE)
            for start, end in spans
        )


def draft_regions(
    layout: Layout, tokens: TokenIndex, regions: Sequence[Region], tokenizer: Tokenizer, budget: ChunkBudget
) -> list[ChunkDraft]:
    """Cut the regions, count each piece, and repair what is over the budget until nothing is.

    A piece over the budget, possible where counts are estimates, first gives up what it repeats, then is halved.
    """
    cutter = Cutter(layout, tokens, budget)
    writer = _Writer(layout, tokens, tokenizer, budget)
    writer.add_breadcrumbs(region.heading_path for region in regions)
    pending = [(region, piece) for region in regions for piece in cutter.cut(region)]
    done: list[_Counted] = []
    while pending:
        over: list[tuple[Region, Piece]] = []
        for counted in writer.count(pending):
            piece = counted.piece
            if writer.fits(counted):
                done.append(counted)
            elif piece.table or piece.overlap_start < piece.start:
                over.append((counted.region, replace(piece, overlap_start=piece.start, table=None)))
            else:
                halves = cutter.halve(piece)
                if len(halves) == 1 and halves[0] == piece:
                    done.append(counted)  # a single character over the budget: `check_drafts` has the last word
                else:
                    over += [(counted.region, half) for half in halves]
        pending = over or _take_repetitions(done)
    drafts = [writer.draft(ordinal, counted) for ordinal, counted in enumerate(done)]
    check_drafts(drafts, [counted.embed_tokens for counted in done], budget)
    return drafts


def _take_repetitions(done: list[_Counted]) -> list[tuple[Region, Piece]]:
    """Sorts the pieces, and takes out those that repeat all of the piece before, now that it is but half of what it
    was. They come back without what they repeat."""
    done.sort(key=lambda counted: counted.piece.start)
    taken = [
        after
        for before, after in pairwise(done)
        if after.piece.overlap_start < after.piece.start and after.piece.overlap_start <= before.piece.start
    ]
    for counted in taken:
        done.remove(counted)
    return [(counted.region, replace(counted.piece, overlap_start=counted.piece.start)) for counted in taken]


def check_drafts(drafts: Sequence[ChunkDraft], embed_tokens: Sequence[int], budget: ChunkBudget) -> None:
    """Raises `QedgeError` 6154 for a chunk without text and 6151 for one over the budget: faults of a chunker.

    `embed_tokens` counts each draft's `embed_text`.
    """
    for draft, tokens in zip(drafts, embed_tokens, strict=True):
        if not draft.text.strip():
            raise QedgeError(6154, f"chunk {draft.ordinal} at {draft.char_start}-{draft.char_end} has no text")
        if tokens + budget.reserved > budget.max_sequence_length or draft.token_count > budget.max_tokens:
            raise QedgeError(
                6151,
                f"chunk {draft.ordinal} at {draft.char_start}-{draft.char_end}: {draft.token_count} tokens of"
                f" {budget.max_tokens}; as embedded {tokens} + {budget.reserved} of {budget.max_sequence_length}",
            )
