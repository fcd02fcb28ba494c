"""Where paragraphs go: the body, a note, a text box, a cell of a table."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from qedge_dagster.documents import BlockKind
from qedge_dagster.extractors.docx.styles import BODY_TEXT, ParagraphStyle

__all__ = ["LINE_BREAK", "Flow", "FlowBlock", "Paragraph", "Row", "Table"]

#: Stands for a line break until the paragraph is whole. No XML can hold it; a line feed of the XML is a mere blank.
LINE_BREAK = "\v"

_BLANKS = re.compile(r"\s+")
_LINE_FEED = re.compile(r"[ \t]*\n[ \t\n]*")
_SOFT_HYPHEN = "\u00ad"


class FlowBlock(NamedTuple):
    kind: BlockKind
    text: str
    level: int = BODY_TEXT
    #: A row of the same table as the one before it.
    continued: bool = False


@dataclass(slots=True)
class Paragraph:
    """`level` and `listed` are what it says itself, whatever its style says."""

    parts: list[str] = field(default_factory=list)
    style: ParagraphStyle = field(default_factory=ParagraphStyle)
    level: int | None = None
    listed: bool | None = None
    #: Its end was deleted, which makes one paragraph of it and the next.
    joined: bool = False
    #: Notes and text boxes, which follow it.
    after: list[FlowBlock] = field(default_factory=list)

    def block(self) -> FlowBlock | None:
        text = "".join(self.parts).replace(_SOFT_HYPHEN, "")
        if "\n" in text:
            text = _LINE_FEED.sub(" ", text)
        text = text.replace(LINE_BREAK, "\n").strip()
        if not text:
            return None
        level = self.style.level if self.level is None else self.level
        if level:
            return FlowBlock("heading", _BLANKS.sub(" ", text), level)
        listed = self.style.listed if self.listed is None else self.listed
        return FlowBlock("list_item" if listed else "paragraph", text)


@dataclass(slots=True)
class Flow:
    """`is_cell`: of a cell, whose text has to fit into a row; what follows its paragraphs waits in `after`."""

    is_cell: bool = False
    deleted: bool = False
    spans: bool = False  # of a cell: more than one column
    blocks: list[FlowBlock] = field(default_factory=list)
    after: list[FlowBlock] = field(default_factory=list)
    _carried: Paragraph | None = None

    def begin(self) -> Paragraph:
        paragraph = Paragraph()
        if self._carried is not None:
            paragraph.parts, paragraph.after = self._carried.parts, self._carried.after
            self._carried = None
        return paragraph

    def add(self, paragraph: Paragraph) -> None:
        if paragraph.joined:
            self._carried = paragraph
            return
        block = paragraph.block()
        if block is not None:
            self.blocks.append(block)
        self.follow(paragraph.after)

    def follow(self, blocks: list[FlowBlock]) -> None:
        (self.after if self.is_cell else self.blocks).extend(blocks)

    def finish(self) -> list[FlowBlock]:
        """What came, when nothing more will."""
        if self._carried is not None:
            self._carried.joined = False
            self.add(self._carried)
            self._carried = None
        return self.blocks

    def text(self) -> str:
        """In one line, as a cell."""
        return _BLANKS.sub(" ", " ".join(block.text for block in self.finish()))


@dataclass(slots=True)
class Row:
    cells: list[Flow] = field(default_factory=list)
    deleted: bool = False


@dataclass(slots=True)
class Table:
    """The rows go to `flow` one by one, what belongs behind them at the end, so that they stay together."""

    flow: Flow
    rows: int = 0
    after: list[FlowBlock] = field(default_factory=list)

    def add(self, row: Row) -> None:
        if row.deleted:
            return
        cells = [cell for cell in row.cells if not cell.deleted]
        for cell in cells:
            cell.finish()
            self.after.extend(cell.after)
        if len(row.cells) == len(cells) == 1 and len(cells[0].blocks) > 1 and not (cells[0].spans or self.flow.is_cell):
            # A frame around a piece of the text.
            self.flow.blocks.extend(cells[0].blocks)
            return
        nested, texts = self.flow.is_cell, [cell.text() for cell in cells]
        text = (", " if nested else " | ").join(text for text in texts if text or not nested)
        if any(texts):
            self.flow.blocks.append(FlowBlock("table_row", text, continued=self.rows > 0))
            self.rows += 1

    def finish(self) -> None:
        self.flow.follow(self.after)
