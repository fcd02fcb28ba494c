"""One story of a document, such as its body, as it is read: runs → paragraphs → blocks.

Each element that changes something keeps what was before on a stack and gives it back at its end (`place`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from qedge_dagster.extractors.docx.fields import Fields
from qedge_dagster.extractors.docx.flow import LINE_BREAK, FlowBlock, Paragraph
from qedge_dagster.extractors.docx.formulas import Formulas
from qedge_dagster.extractors.docx.place import Place
from qedge_dagster.extractors.docx.styles import FORMER_PROPERTIES, Styles, is_on, outline_level
from qedge_dagster.extractors.docx.symbols import symbol
from qedge_dagster.extractors.docx.xml import PartReader, attribute, chart, diagram, drawing, math, named

__all__ = ["Notes", "StoryOptions", "StoryReader"]

#: Notes, and what is told in charts and diagrams, by what calls them: ("footnote", its id), ("graphic", its relation).
Notes = dict[tuple[str, str], list[FlowBlock]]

_HEXADECIMAL = re.compile(r"[0-9A-Fa-f]{1,6}")
_VML = "urn:schemas-microsoft-com:vml "
_COMPATIBILITY = "http://schemas.openxmlformats.org/markup-compatibility/2006 "


@dataclass(frozen=True, slots=True)
class StoryOptions:
    text_boxes: bool = True
    hidden_text: bool = False


class StoryReader(PartReader):
    """Reads a part into `blocks`. `notes` are taken out as they are called."""

    def __init__(self, styles: Styles, options: StoryOptions, notes: Notes | None = None) -> None:
        self._styles = styles
        self._options = options
        self._notes = notes if notes is not None else {}
        #: What is not read, in words.
        self.missed: set[str] = set()
        #: Whether there are pictures or drawings, of whatever kind.
        self.pictures = False

        self._stack: list[Any] = []
        self._skipped = 0
        self._place = Place()
        self._fields = Fields()
        self._properties = ""  # whose properties are being read
        self._hidden = False  # by the properties of the run
        self._muted = 0  # deleted, or moved away
        self._in_text = self._in_code = False
        self._amount = 0  # of what was added so far
        self._taken = False  # an alternative of this choice gave something
        self._reading: list[str] = []  # the characters that say how others are pronounced
        self._starts, self._ends = self._handlers()

    @property
    def blocks(self) -> list[FlowBlock]:
        return self._place.finish()

    @property
    def _paragraph(self) -> Paragraph | None:
        return self._place.paragraph

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
        elif self._in_code:
            self._fields.withhold(text)

    def _add(self, text: str) -> None:
        if self._paragraph is not None:
            self._paragraph.parts.append(text)
            self._amount += not text.isspace()

    @property
    def _visible(self) -> bool:
        return not (self._muted or self._hidden or self._fields.in_code)

    def _parts(self) -> list[str] | None:
        return self._paragraph.parts if self._paragraph is not None and self._visible else None

    def _handlers(self) -> tuple[dict[str, Callable[[Mapping[str, str]], None]], dict[str, Callable[[], None]]]:
        formulas = Formulas(self._parts)
        starts = {
            **named(dict.fromkeys((*_SKIPPED, *FORMER_PROPERTIES), self._skip)),
            **named({local: self._add_symbol(text) for local, text in _SYMBOLS.items()}),
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
                    "listEntry": self._choice_of_field,
                    "result": self._choice_made,
                    "del": self._start_deleted,
                    "moveFrom": self._start_deleted,
                    "tbl": lambda _: self._place.start_table(),
                    "tr": lambda _: self._place.start_row(),
                    "trPr": self._start_properties("row"),
                    "tc": lambda _: self._place.start_cell(),
                    "hidden": self._hidden_row,
                    "gridSpan": self._spanning_cell,
                    "tcPr": self._start_properties("cell"),
                    "cellDel": self._deleted_cell,
                    "txbxContent": self._start_box,
                    "footnoteReference": self._note_reference("footnote"),
                    "endnoteReference": self._note_reference("endnote"),
                    **dict.fromkeys(("drawing", "pict", "object"), self._picture),
                    "ruby": self._start_ruby,
                    "rt": lambda _: self._place.start_aside(self._reading),
                    "altChunk": self._miss("an embedded file of another format"),
                    "subDoc": self._miss("a subdocument, which is a file of its own"),
                }
            ),
            **dict.fromkeys(math("r"), self._start_run),
            **dict.fromkeys(math("t"), self._start_text),
            **dict.fromkeys(math("ctrlPr"), self._skip),
            **formulas.starts(),
            **dict.fromkeys(drawing("txBody"), self._start_box),
            **dict.fromkeys(drawing("p"), self._start_paragraph),
            **dict.fromkeys(drawing("t"), self._start_text),
            **dict.fromkeys(drawing("br"), self._add_symbol(LINE_BREAK)),
            **dict.fromkeys((*chart("chart"), *diagram("relIds")), self._graphic),
            _VML + "textpath": self._word_art,
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
                    "tbl": lambda: self._place.end_table(),
                    "tr": lambda: self._place.end_row(),
                    "tc": lambda: self._place.end_cell(),
                    "rt": lambda: self._place.end_aside(),
                    "txbxContent": self._end_box,
                    "ruby": self._end_ruby,
                }
            ),
            **dict.fromkeys(math("r"), self._end_run),
            **dict.fromkeys(math("t"), self._end_text),
            **formulas.ends(),
            **dict.fromkeys(drawing("txBody"), self._end_box),
            **dict.fromkeys(drawing("p"), self._end_paragraph),
            **dict.fromkeys(drawing("t"), self._end_text),
            _COMPATIBILITY + "AlternateContent": self._end_alternatives,
            _COMPATIBILITY + "Choice": self._end_choice,
            _COMPATIBILITY + "Fallback": self._end_choice,
        }
        return starts, ends

    def _skip(self, _: Mapping[str, str]) -> None:
        self._skipped = 1

    # paragraphs

    def _start_paragraph(self, _: Mapping[str, str] = MappingProxyType({})) -> None:
        self._place.start_paragraph().style = self._styles.paragraph(None)

    def _end_paragraph(self) -> None:
        withheld = self._fields.end_paragraph()
        if self._paragraph is not None:
            self._paragraph.parts += withheld
        self._place.end_paragraph()

    def _paragraph_style(self, attributes: Mapping[str, str]) -> None:
        if self._properties == "paragraph" and self._paragraph is not None:
            self._paragraph.style = self._styles.paragraph(attribute(attributes, "val"))

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
        self._hidden = self._of_run(self._paragraph is not None and self._paragraph.style.hidden)

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
            self._hidden = self._of_run(not (self._paragraph is not None and self._paragraph.style.hidden))

    def _vanish(self, attributes: Mapping[str, str]) -> None:
        if self._properties == "run":
            self._hidden = self._of_run(is_on(attribute(attributes, "val")))

    def _start_text(self, _: Mapping[str, str]) -> None:
        self._stack.append(self._start_missing_paragraph())
        self._in_text = self._visible
        self._in_code = self._fields.in_code and not (self._muted or self._hidden)

    def _end_text(self) -> None:
        self._in_text = self._in_code = False
        if self._stack.pop():
            self._end_paragraph()

    def _add_symbol(self, text: str) -> Callable[[Mapping[str, str]], None]:
        def add(_: Mapping[str, str]) -> None:
            if self._visible:
                self._add(text)

        return add

    def _symbol(self, attributes: Mapping[str, str]) -> None:
        code = attribute(attributes, "char") or ""
        if self._visible and _HEXADECIMAL.fullmatch(code):
            self._add(symbol(attribute(attributes, "font") or "", int(code, 16)))

    def _start_ruby(self, _: Mapping[str, str]) -> None:
        self._stack.append(self._reading)
        self._reading = []

    def _end_ruby(self) -> None:
        if self._reading:
            self._add(f"({''.join(self._reading)})")
        self._reading = self._stack.pop()

    # fields, tracked changes, alternatives

    def _field(self, attributes: Mapping[str, str]) -> None:
        result = self._fields.mark(attribute(attributes, "fldCharType"))
        if result and self._visible:
            self._add(result)

    def _choice_of_field(self, attributes: Mapping[str, str]) -> None:
        self._fields.offer(attribute(attributes, "val"))

    def _choice_made(self, attributes: Mapping[str, str]) -> None:
        self._fields.choose(attribute(attributes, "val"))

    def _start_deleted(self, _: Mapping[str, str]) -> None:
        if self._properties == "mark" and self._paragraph is not None:
            self._paragraph.joined = True
        elif self._properties == "row" and self._place.row is not None:
            self._place.row.deleted = True
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

    def _hidden_row(self, attributes: Mapping[str, str]) -> None:
        if self._properties == "row" and self._place.row is not None and not self._options.hidden_text:
            self._place.row.deleted = self._place.row.deleted or is_on(attribute(attributes, "val"))

    def _spanning_cell(self, attributes: Mapping[str, str]) -> None:
        if self._properties == "cell":
            self._place.flow.spans = attribute(attributes, "val") not in (None, "1")

    def _deleted_cell(self, _: Mapping[str, str]) -> None:
        if self._properties == "cell":
            self._place.flow.deleted = True

    # text boxes and notes

    def _start_box(self, _: Mapping[str, str]) -> None:
        if not self._options.text_boxes or not self._visible:
            self._skipped = 1
            return
        self._enter()

    def _end_box(self) -> None:
        blocks = self._leave()
        self._place.follow(blocks)

    def _note_reference(self, kind: str) -> Callable[[Mapping[str, str]], None]:
        def call(attributes: Mapping[str, str]) -> None:
            if self._visible and self._paragraph is not None:
                self._paragraph.after.extend(self._notes.pop((kind, attribute(attributes, "id") or ""), ()))

        return call

    def _graphic(self, attributes: Mapping[str, str]) -> None:
        """A chart, or the data of a diagram: in a part of its own."""
        relation = attribute(attributes, "id") or attribute(attributes, "dm") or ""
        told = self._notes.pop(("graphic", relation), ())
        if told and self._visible and self._paragraph is not None and self._options.text_boxes:
            self._amount += 1
            self._paragraph.after.extend(told)

    def _word_art(self, attributes: Mapping[str, str]) -> None:
        text = (attribute(attributes, "string") or "").strip()
        if text and self._visible and self._paragraph is not None and self._options.text_boxes:
            self._amount += 1
            self._paragraph.after.append(FlowBlock("paragraph", text))

    def _picture(self, _: Mapping[str, str]) -> None:
        self.pictures = True

    def _enter(self) -> None:
        """Begin a story within the story."""
        self._stack.append((self._place, self._fields, self._properties, self._hidden))
        self._place, self._fields = Place(), Fields()
        self._properties, self._hidden, self._in_text, self._in_code = "", False, False, False

    def _leave(self) -> list[FlowBlock]:
        """Its blocks; a heading in it is none of the document."""
        blocks = self._place.finish()
        self._place, self._fields, self._properties, self._hidden = self._stack.pop()
        return [block._replace(kind="paragraph", level=0) if block.level else block for block in blocks]

    def _miss(self, what: str) -> Callable[[Mapping[str, str]], None]:
        def miss(_: Mapping[str, str]) -> None:
            if not self._muted:
                self.missed.add(what)

        return miss


_SKIPPED = ("sectPr", "sdtPr", "sdtEndPr", "tabs", "tblPr", "tblGrid")

_SYMBOLS = {
    **dict.fromkeys(("tab", "ptab"), "\t"),
    **dict.fromkeys(("br", "cr"), LINE_BREAK),
    "noBreakHyphen": "-",  # as it is typed in a search
}
