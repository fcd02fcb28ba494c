"""One story of a document, such as its body, as it is read: runs → paragraphs → blocks.

Each element that changes something keeps what was before on one stack and gives it back at its end, so that any nesting
is followed, however odd or deep, and without recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from qedge_dagster.extractors.docx.flow import Flow, FlowBlock, Paragraph, Row, Table
from qedge_dagster.extractors.docx.styles import FORMER_PROPERTIES, Styles, is_on, outline_level
from qedge_dagster.extractors.docx.xml import attribute, math, named, word

__all__ = ["Notes", "StoryOptions", "StoryReader"]

#: Notes by the reference that calls them: ("footnote", id).
Notes = dict[tuple[str, str], list[FlowBlock]]

_PRIVATE_USE = range(0xE000, 0xF900)
_COMPATIBILITY = "http://schemas.openxmlformats.org/markup-compatibility/2006 "


@dataclass(frozen=True, slots=True)
class StoryOptions:
    text_boxes: bool = True
    hidden_text: bool = False


class StoryReader:
    """Reads a part into `blocks`. `notes` are taken out as they are called; with `notes_of` ("footnote", "endnote") the
    part is one of notes, and `found` has them."""

    def __init__(self, styles: Styles, options: StoryOptions, notes: Notes | None = None, notes_of: str = "") -> None:
        self._styles = styles
        self._options = options
        self._notes = notes if notes is not None else {}
        self._notes_of = notes_of
        self.found: Notes = {}
        #: What is not read, in words.
        self.missed: set[str] = set()

        self._stack: list[Any] = []
        self._skipped = 0
        self._flow = self._body = Flow()
        self._table: Table | None = None
        self._row: Row | None = None
        self._paragraph: Paragraph | None = None
        self._properties = ""  # whose properties are being read
        self._hidden = False  # by the properties of the run
        self._muted = 0  # deleted, or moved away
        self._codes: list[bool] = []  # of each open field, whether its code is being read rather than its result
        self._in_text = False
        self._amount = 0  # of what was added so far
        self._taken = False  # an alternative of this choice gave something
        self._reading: list[str] = []  # the characters that say how others are pronounced
        self._starts, self._ends = self._handlers()

    @property
    def blocks(self) -> list[FlowBlock]:
        return self._body.finish()

    # events

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipped:
            self._skipped += 1
        elif (handler := self._starts.get(name)) is not None:
            handler(attributes)

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif (handler := self._ends.get(name)) is not None:
            handler()

    def characters(self, text: str) -> None:
        if self._in_text:
            self._add(text)

    def _add(self, text: str) -> None:
        if self._paragraph is not None:
            self._paragraph.parts.append(text)
            self._amount += not text.isspace()

    @property
    def _visible(self) -> bool:
        return not (self._muted or self._hidden or True in self._codes)

    def _handlers(self) -> tuple[dict[str, Callable[[Mapping[str, str]], None]], dict[str, Callable[[], None]]]:
        starts = {
            **named(dict.fromkeys((*_SKIPPED, *FORMER_PROPERTIES), self._skip)),
            **named({local: self._add_symbol(symbol) for local, symbol in _SYMBOLS.items()}),
            **named(
                {
                    "p": self._start_paragraph,
                    "pPr": self._start_properties("paragraph"),
                    "pStyle": self._paragraph_style,
                    "outlineLvl": self._outline,
                    "numId": self._numbering,
                    "r": self._start_run,
                    "rPr": self._start_run_properties,
                    "rStyle": self._run_style,
                    "vanish": self._vanish,
                    "t": self._start_text,
                    "sym": self._symbol,
                    "fldChar": self._field,
                    "del": self._start_deleted,
                    "moveFrom": self._start_deleted,
                    "tbl": self._start_table,
                    "tr": self._start_row,
                    "trPr": self._start_properties("row"),
                    "tc": self._start_cell,
                    "tcPr": self._start_properties("cell"),
                    "cellDel": self._deleted_cell,
                    "txbxContent": self._start_box,
                    "footnoteReference": self._note_reference("footnote"),
                    "endnoteReference": self._note_reference("endnote"),
                    "ruby": self._start_ruby,
                    "rt": self._start_reading,
                    "altChunk": self._miss("an embedded file of another format"),
                    "subDoc": self._miss("a subdocument, which is a file of its own"),
                }
            ),
            **dict.fromkeys(math("r"), self._start_run),
            **dict.fromkeys(math("t"), self._start_text),
            **dict.fromkeys(math("ctrlPr"), self._skip),
            **{name: self._add_symbol(sign) for local, sign in _MATH_SIGNS.items() for name in math(local)},
            _COMPATIBILITY + "AlternateContent": self._start_alternatives,
            _COMPATIBILITY + "Choice": self._start_choice,
            _COMPATIBILITY + "Fallback": self._start_choice,
        }
        ends: dict[str, Callable[[], None]] = {
            **named(
                {
                    "p": self._end_paragraph,
                    "r": self._end_run,
                    "t": self._end_text,
                    **dict.fromkeys(("pPr", "rPr", "trPr", "tcPr"), self._end_properties),
                    **dict.fromkeys(("del", "moveFrom"), self._end_deleted),
                    "tbl": self._end_table,
                    "tr": self._end_row,
                    "tc": self._end_cell,
                    "txbxContent": self._end_box,
                    "ruby": self._end_ruby,
                    "rt": self._end_reading,
                }
            ),
            **dict.fromkeys(math("r"), self._end_run),
            **dict.fromkeys(math("t"), self._end_text),
            _COMPATIBILITY + "AlternateContent": self._end_alternatives,
            _COMPATIBILITY + "Choice": self._end_choice,
            _COMPATIBILITY + "Fallback": self._end_choice,
        }
        if self._notes_of:
            starts.update(dict.fromkeys(word(self._notes_of), self._start_note))
            ends.update(dict.fromkeys(word(self._notes_of), self._end_note))
        return starts, ends

    def _skip(self, _: Mapping[str, str]) -> None:
        self._skipped = 1

    # paragraphs

    def _start_paragraph(self, _: Mapping[str, str] = MappingProxyType({})) -> None:
        self._stack.append(self._paragraph)
        self._paragraph = self._flow.begin()
        self._take_style(None)

    def _end_paragraph(self) -> None:
        paragraph, self._paragraph = self._paragraph, self._stack.pop()
        # A code that has not ended by here may never do: better a piece of code than a lost text.
        self._codes = [False] * len(self._codes)
        if paragraph is not None:
            self._flow.add(paragraph)

    def _take_style(self, style_id: str | None) -> None:
        if self._paragraph is not None:
            style = self._styles.paragraph(style_id)
            self._paragraph.level, self._paragraph.listed, self._paragraph.hidden = style

    def _paragraph_style(self, attributes: Mapping[str, str]) -> None:
        if self._properties == "paragraph":  # it comes first among them
            self._take_style(attribute(attributes, "val"))

    def _outline(self, attributes: Mapping[str, str]) -> None:
        level = outline_level(attributes)
        if self._properties == "paragraph" and self._paragraph is not None and level is not None:
            self._paragraph.level = level

    def _numbering(self, attributes: Mapping[str, str]) -> None:
        if self._properties == "paragraph" and self._paragraph is not None:
            self._paragraph.listed = attribute(attributes, "val") != "0"

    # runs

    def _start_run(self, _: Mapping[str, str]) -> None:
        self._stack.append((self._hidden, self._start_missing_paragraph()))
        self._hidden = self._of_run(self._paragraph is not None and self._paragraph.hidden)

    def _end_run(self) -> None:
        self._hidden, alone = self._stack.pop()
        if alone:
            self._end_paragraph()

    def _start_missing_paragraph(self) -> bool:
        """Runs and texts outside of any paragraph become one, else they would be lost."""
        missing = self._paragraph is None
        if missing:
            self._start_paragraph()
        return missing

    def _of_run(self, hidden: bool) -> bool:
        return hidden and not self._options.hidden_text

    def _run_style(self, attributes: Mapping[str, str]) -> None:
        if self._properties == "run" and self._styles.hides(attribute(attributes, "val") or ""):
            # Two styles that both hide, the paragraph's and its own, cancel each other out: so Word reads them.
            self._hidden = self._of_run(not (self._paragraph is not None and self._paragraph.hidden))

    def _vanish(self, attributes: Mapping[str, str]) -> None:
        if self._properties == "run":
            self._hidden = self._of_run(is_on(attribute(attributes, "val")))

    def _start_text(self, _: Mapping[str, str]) -> None:
        self._stack.append(self._start_missing_paragraph())
        self._in_text = self._visible

    def _end_text(self) -> None:
        self._in_text = False
        if self._stack.pop():
            self._end_paragraph()

    def _add_symbol(self, symbol: str) -> Callable[[Mapping[str, str]], None]:
        def add(_: Mapping[str, str]) -> None:
            if self._visible:
                self._add(symbol)

        return add

    def _symbol(self, attributes: Mapping[str, str]) -> None:
        """A character by its number; those of private use mean something in their font alone."""
        try:
            code = int(attribute(attributes, "char") or "", 16)
            symbol = chr(code)
        except (ValueError, OverflowError):
            return
        if self._visible and code not in _PRIVATE_USE and symbol.isprintable():
            self._add(symbol)

    def _start_ruby(self, _: Mapping[str, str]) -> None:
        self._stack.append(self._reading)
        self._reading = []

    def _end_ruby(self) -> None:
        if self._reading:
            self._add(f"({''.join(self._reading)})")
        self._reading = self._stack.pop()

    def _start_reading(self, _: Mapping[str, str]) -> None:
        self._stack.append(self._paragraph)
        self._paragraph = Paragraph(self._reading)

    def _end_reading(self) -> None:
        self._paragraph = self._stack.pop()

    # fields, tracked changes, alternatives

    def _field(self, attributes: Mapping[str, str]) -> None:
        kind = attribute(attributes, "fldCharType")
        if kind == "begin":
            self._codes.append(True)
        elif kind == "separate" and self._codes:
            self._codes[-1] = False
        elif kind == "end" and self._codes:
            self._codes.pop()

    def _start_deleted(self, _: Mapping[str, str]) -> None:
        if self._properties == "mark" and self._paragraph is not None:
            self._paragraph.joined = True
        elif self._properties == "row" and self._row is not None:
            self._row.deleted = True
        if not self._properties:
            self._muted += 1

    def _end_deleted(self) -> None:
        if not self._properties:
            self._muted -= 1

    def _start_alternatives(self, _: Mapping[str, str]) -> None:
        self._stack.append(self._taken)
        self._taken = False

    def _end_alternatives(self) -> None:
        self._taken = self._stack.pop()

    def _start_choice(self, _: Mapping[str, str]) -> None:
        """The same in another form: one is enough, the first that gives anything."""
        if self._taken:
            self._skipped = 1
        else:
            self._stack.append(self._amount)

    def _end_choice(self) -> None:
        self._taken = self._amount > self._stack.pop()

    # properties

    def _start_properties(self, whose: str) -> Callable[[Mapping[str, str]], None]:
        def start(_: Mapping[str, str]) -> None:
            self._stack.append(self._properties)
            self._properties = whose

        return start

    def _start_run_properties(self, _: Mapping[str, str]) -> None:
        self._stack.append(self._properties)
        # Those within a paragraph's properties are of the mark at its end.
        self._properties = "mark" if self._properties == "paragraph" else "run"

    def _end_properties(self) -> None:
        self._properties = self._stack.pop()

    # tables

    def _start_table(self, _: Mapping[str, str]) -> None:
        self._flow.finish()
        self._stack.append((self._table, self._row, self._paragraph))
        self._table, self._row, self._paragraph = Table(self._flow), None, None

    def _end_table(self) -> None:
        if self._table is not None:
            self._table.finish()
        self._table, self._row, self._paragraph = self._stack.pop()

    def _start_row(self, _: Mapping[str, str]) -> None:
        self._stack.append(self._row)
        self._row = Row()

    def _end_row(self) -> None:
        if self._table is not None and self._row is not None:
            self._table.add(self._row)
        self._row = self._stack.pop()

    def _start_cell(self, _: Mapping[str, str]) -> None:
        self._stack.append(self._flow)
        self._flow = Flow(is_cell=True)

    def _end_cell(self) -> None:
        cell, self._flow = self._flow, self._stack.pop()
        text = cell.text()
        if self._table is None or self._row is None:
            self._flow.follow([*cell.blocks, *cell.after])
        elif not cell.deleted:
            self._row.cells.append(text)
            self._table.after.extend(cell.after)

    def _deleted_cell(self, _: Mapping[str, str]) -> None:
        if self._properties == "cell":
            self._flow.deleted = True

    # text boxes and notes

    def _start_box(self, _: Mapping[str, str]) -> None:
        if not self._options.text_boxes or not self._visible:
            self._skipped = 1
            return
        self._enter()

    def _end_box(self) -> None:
        blocks = self._leave()
        if self._paragraph is not None:
            self._paragraph.after.extend(blocks)
        else:
            self._flow.follow(blocks)

    def _note_reference(self, kind: str) -> Callable[[Mapping[str, str]], None]:
        def call(attributes: Mapping[str, str]) -> None:
            if self._visible and self._paragraph is not None:
                self._paragraph.after.extend(self._notes.pop((kind, attribute(attributes, "id") or ""), ()))

        return call

    def _start_note(self, attributes: Mapping[str, str]) -> None:
        kind = attribute(attributes, "type")
        if kind not in (None, "normal"):  # the lines that separate them
            self._skipped = 1
            return
        self._enter()
        self._stack.append(attribute(attributes, "id") or "")

    def _end_note(self) -> None:
        note = self._stack.pop()
        self.found[self._notes_of, note] = self._leave()

    def _enter(self) -> None:
        """Begin a story within the story."""
        outer = (self._flow, self._table, self._row, self._paragraph, self._properties, self._hidden, self._codes)
        self._stack.append(outer)
        self._flow, self._codes = Flow(), []
        self._table = self._row = self._paragraph = None
        self._properties, self._hidden, self._in_text = "", False, False

    def _leave(self) -> list[FlowBlock]:
        """Its blocks; a heading in it is none of the document."""
        blocks = self._flow.finish()
        self._flow, self._table, self._row, self._paragraph, self._properties, self._hidden, self._codes = (
            self._stack.pop()
        )
        return [block._replace(kind="paragraph", level=0) if block.level else block for block in blocks]

    def _miss(self, what: str) -> Callable[[Mapping[str, str]], None]:
        def miss(_: Mapping[str, str]) -> None:
            if not self._muted:
                self.missed.add(what)

        return miss


_SKIPPED = ("sectPr", "sdtPr", "sdtEndPr", "tabs", "tblPr", "tblGrid")

_SYMBOLS = {
    **dict.fromkeys(("tab", "ptab"), "\t"),
    **dict.fromkeys(("br", "cr"), "\n"),
    "noBreakHyphen": "-",  # as it is typed in a search
    "softHyphen": "",
}

#: Between the parts of a formula, where the eye sees a place and not a sign.
_MATH_SIGNS = {"den": "/", "sub": "_", "sup": "^"}
