"""What is told in a chart or a diagram: titles, names and labels, from the part that holds its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qedge_dagster.extractors.docx.flow import FlowBlock
from qedge_dagster.extractors.docx.xml import PartReader, chart, drawing

__all__ = ["GRAPHICS", "GraphicReader"]

#: The relations that lead to such parts.
GRAPHICS = ("chart", "diagramData")


class GraphicReader(PartReader):
    """One block of the paragraphs of its text, and of the names of a chart's series and categories, each once."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._text: list[str] = []
        self._depth = 0  # of what is read
        self._strings = 0
        self._starts: dict[str, Callable[[], None]] = {
            **dict.fromkeys(drawing("t"), self._read),
            **dict.fromkeys(chart("strCache"), self._start_strings),
            **dict.fromkeys(chart("v"), self._read_string),
        }
        self._ends: dict[str, Callable[[], None]] = {
            **dict.fromkeys(drawing("t"), self._leave),
            **dict.fromkeys(drawing("p"), self._finish),
            **dict.fromkeys(chart("strCache"), self._end_strings),
            **dict.fromkeys(chart("v"), self._end_string),
        }

    @property
    def blocks(self) -> list[FlowBlock]:
        return [FlowBlock("paragraph", "\n".join(self._texts))] if self._texts else []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:  # noqa: ARG002
        if (handler := self._starts.get(name)) is not None:
            handler()

    def end(self, name: str) -> None:
        if (handler := self._ends.get(name)) is not None:
            handler()

    def characters(self, text: str) -> None:
        if self._depth:
            self._text.append(text)

    def _read(self) -> None:
        self._depth += 1

    def _leave(self) -> None:
        self._depth -= 1

    def _start_strings(self) -> None:
        self._strings += 1

    def _end_strings(self) -> None:
        self._strings -= 1

    def _read_string(self) -> None:
        self._depth += self._strings > 0

    def _end_string(self) -> None:
        self._depth -= self._strings > 0
        self._finish()

    def _finish(self) -> None:
        text = " ".join("".join(self._text).split())
        self._text.clear()
        if text:
            self._texts[text] = None
