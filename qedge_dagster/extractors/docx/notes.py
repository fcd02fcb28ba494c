"""Foot- and endnotes: a part with many small stories."""

from __future__ import annotations

from collections.abc import Mapping

from qedge_dagster.extractors.docx.story import Notes, StoryOptions, StoryReader
from qedge_dagster.extractors.docx.styles import Styles
from qedge_dagster.extractors.docx.xml import attribute, word

__all__ = ["NotesReader"]


class NotesReader(StoryReader):
    """`kind` is "footnote" or "endnote"; `found` has the notes."""

    def __init__(self, styles: Styles, options: StoryOptions, kind: str) -> None:
        super().__init__(styles, options)
        self._kind = kind
        self.found: Notes = {}
        self._starts.update(dict.fromkeys(word(kind), self._start_note))
        self._ends.update(dict.fromkeys(word(kind), self._end_note))

    def _start_note(self, attributes: Mapping[str, str]) -> None:
        kind = attribute(attributes, "type")
        if kind not in (None, "normal"):  # the lines that separate them
            self._skip(attributes)
            return
        self._enter()
        self._stack.append(attribute(attributes, "id") or "")

    def _end_note(self) -> None:
        note = self._stack.pop()
        self.found[self._kind, note] = self._leave()
