"""Markdown: headings, paragraphs, list items, table rows, code and quotes, by slices of the source."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock
from markdown_it.rules_block import StateBlock, list_block
from markdown_it.rules_block import table as table_rule
from markdown_it.token import Token

from qedge_dagster.documents import BlockKind, DocumentBlock, ExtractedDocument
from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.base import ExtractionContext
from qedge_dagster.extractors.decoding import read_text
from qedge_dagster.extractors.front_matter import read_front_matter
from qedge_dagster.extractors.spans import visible_span
from qedge_dagster.sources.base import SourceItem

__all__ = ["MarkdownExtractor"]

#: Lists deeper than half of this are taken for paragraphs. The parser's own limit drops all that follows.
MAX_DEPTH = 40

_KINDS: dict[str, BlockKind] = {"fence": "code", "code_block": "code", "blockquote_open": "quote"}


@dataclass(frozen=True, slots=True)
class MarkdownExtractor:
    """CommonMark with tables and front matter. `text` is the source after the front matter.

    The span of a heading is its title alone, as written: `#` marks and underlines lie between blocks. The header row of
    a table includes the rule below it, so it alone has two lines. All other text is in some block.
    """

    strict_utf8: bool = False

    id = "markdown"
    version = 1
    extensions = frozenset({".md", ".markdown"})
    media_types = frozenset({"text/markdown"})

    @property
    def variant(self) -> str:
        return "strict-utf8" if self.strict_utf8 else ""

    def can_extract(self, item: SourceItem) -> bool:  # noqa: ARG002 - the contract's last word: any item will do
        return True

    def extract(self, item: SourceItem, context: ExtractionContext) -> ExtractedDocument:
        """Raises `QedgeError` 6104 for binary content, 6106 with `strict_utf8`, 6155 where the parser fails."""
        decoded = read_text(item, context, self.strict_utf8)
        front = read_front_matter(_line_feeds(decoded.text))
        text = decoded.text[front.end :]
        return ExtractedDocument(
            item.document_id,
            self.id,
            self.version,
            item.media_type,
            text,
            tuple(_blocks(text)),
            {**front.metadata, "encoding": decoded.encoding},
            warnings=(*decoded.warnings, *front.warnings),
        )


def _line_feeds(text: str) -> str:
    """The only line break the parser knows, at the same offsets; needed where normalisation is off."""
    return text.replace("\r\n", " \n").replace("\r", "\n") if "\r" in text else text


def _blocks(text: str) -> Iterator[DocumentBlock]:
    parser = _parser()
    state = _State(_line_feeds(text), parser, {}, [])
    # The offset of each line, and of the end; `state.bMarks` is changed in passing by the rules for quotes.
    lines = tuple(state.bMarks)
    rules = parser.block.ruler.getRules("")
    while True:
        line = state.line = state.skipEmptyLines(state.line)
        if line >= state.lineMax:
            return
        # One block at a time: the tokens of a whole book would take many times its size.
        state.tokens.clear()
        try:
            matched = any(rule(state, line, state.lineMax, False) for rule in rules)
        except Exception as error:
            raise QedgeError(6155, f"line {line + 1}: {type(error).__name__}") from error
        if not matched or state.line <= line:
            raise QedgeError(6155, f"line {line + 1}: no rule takes it")
        yield from _block(text, state, lines, line)


def _block(text: str, state: StateBlock, lines: tuple[int, ...], line: int) -> Iterator[DocumentBlock]:
    """The blocks of one block of the parser: lines from `line` to before `state.line`."""
    first = state.tokens[0]
    kind = _KINDS.get(first.type, "paragraph")
    starts = [line]
    if first.type == "heading_open":
        title = _title(text, state, lines, line)
        if title is not None:
            yield DocumentBlock("heading", *title, heading_level=int(first.tag[1:]))
            return
    elif first.type == "table":
        kind = "table_row"
        starts += range(line + 2, state.line)
    elif first.type in ("bullet_list_open", "ordered_list_open"):
        kind = "list_item"
        items = (token for token in state.tokens if token.type == "list_item_open" and token.level == 1)
        starts = [item.map[0] for item in items if item.map]
    for begin, end in zip(starts, [*starts[1:], state.line], strict=True):
        span = visible_span(text, lines[begin], lines[end])
        if span is not None:
            # The indentation of its first line belongs to code.
            yield DocumentBlock(kind, lines[begin] if kind == "code" else span[0], span[1])


def _title(text: str, state: StateBlock, lines: tuple[int, ...], line: int) -> tuple[int, int] | None:
    """The span of a heading's title; None if it has none."""
    heading, inline = state.tokens[:2]
    if not heading.markup.startswith("#"):
        return visible_span(text, lines[line], lines[state.line - 1])
    after_marks = lines[line] + state.tShift[line] + len(heading.markup)
    start = state.src.find(inline.content, after_marks)
    return visible_span(text, start, start + len(inline.content))


class _State(StateBlock):
    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        if token.level > 1 or nesting < 0:  # of no interest, and a list of a million items has many
            self.tokens.pop()
        return token


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": sys.maxsize})
    parser.block = _BlockParser()
    return parser


class _BlockParser(ParserBlock):
    """The parser's rules, for the extent of the outermost blocks alone."""

    def __init__(self) -> None:
        super().__init__()
        # Reference definitions give no token: without their rule they are paragraphs, and nothing is lost.
        self.ruler.disable("reference")
        self.ruler.at("table", _table, {"alt": ["paragraph"]})
        self.ruler.at("list", _list, {"alt": ["paragraph", "blockquote"]})

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:  # noqa: N803 - the parser's names
        if state.parentType == "blockquote":
            # Where a quote ends is known before its content is parsed; parsing quotes in quotes is slow.
            state.line = endLine
        else:
            super().tokenize(state, startLine, endLine)


def _list(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    return state.level < MAX_DEPTH and list_block(state, start, end, silent)


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The parser's rule for tables, with one token for the table: its own makes three per cell, and gives up where rows
    are much shorter than the header."""
    if not table_rule(state, start, end, True):
        return False
    if silent:
        return True
    terminators = state.md.block.ruler.getRules("blockquote")
    line = start + 2
    while (
        line < end
        and not state.isEmpty(line)
        and state.sCount[line] >= state.blkIndent
        and not state.is_code_block(line)
        and not any(rule(state, line, end, True) for rule in terminators)
    ):
        line += 1
    state.push("table", "", 0)
    state.line = line
    return True
