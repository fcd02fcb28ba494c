"""Where in a story the reading is: the paragraph, the cell, the row, the table that are open.

Each start keeps what was before on a stack, and its end gives that back: so any nesting is followed, however odd or
deep, and without recursion.
"""

from __future__ import annotations

from typing import Any

from qedge_dagster.extractors.docx.flow import Flow, FlowBlock, Paragraph, Row, Table

__all__ = ["Place"]

#: Tables within tables within tables: beyond this the inner ones are read as text of the cell they are in.
_MAX_TABLES = 8


class Place:
    def __init__(self) -> None:
        self.paragraph: Paragraph | None = None
        self.row: Row | None = None
        self.flow = self._body = Flow()
        self._table: Table | None = None
        self._tables = 0  # that are open
        self._stack: list[Any] = []

    def finish(self) -> list[FlowBlock]:
        """The blocks of the story, when nothing more will come."""
        return self._body.finish()

    def start_paragraph(self) -> Paragraph:
        self._stack.append(self.paragraph)
        self.paragraph = paragraph = self.flow.begin()
        return paragraph

    def end_paragraph(self) -> None:
        paragraph, self.paragraph = self.paragraph, self._stack.pop()
        if paragraph is not None:
            self.flow.add(paragraph)

    def start_aside(self, parts: list[str]) -> None:
        """Until `end_aside`, what comes goes to `parts` instead."""
        self._stack.append(self.paragraph)
        self.paragraph = Paragraph(parts)

    def end_aside(self) -> None:
        self.paragraph = self._stack.pop()

    def follow(self, blocks: list[FlowBlock]) -> None:
        """Put blocks after the paragraph, or here where there is none."""
        if self.paragraph is not None:
            self.paragraph.after.extend(blocks)
        else:
            self.flow.follow(blocks)

    def start_table(self) -> None:
        self.flow.finish()
        self._stack.append((self._table, self.row, self.paragraph))
        self._table, self.row, self.paragraph = Table(self.flow), None, None
        self._tables += 1

    def end_table(self) -> None:
        if self._table is not None:
            self._table.finish()
        self._table, self.row, self.paragraph = self._stack.pop()
        self._tables -= 1

    def start_row(self) -> None:
        self._stack.append(self.row)
        self.row = Row()

    def end_row(self) -> None:
        if self._table is not None and self.row is not None:
            self._table.add(self.row)
        self.row = self._stack.pop()

    def start_cell(self) -> None:
        self._stack.append(self.flow)
        if self._tables <= _MAX_TABLES:
            self.flow = Flow(is_cell=True)

    def end_cell(self) -> None:
        cell, self.flow = self.flow, self._stack.pop()
        if cell is self.flow:
            return
        if self._table is None or self.row is None:
            self.flow.follow([*cell.finish(), *cell.after])
        else:
            self.row.cells.append(cell)
