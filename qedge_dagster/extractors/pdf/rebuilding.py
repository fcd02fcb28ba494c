"""A table of objects by a search through the file, for files whose own cannot be trusted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, BinaryIO

from pdfminer.pdfdocument import PDFXRef
from pdfminer.pdfparser import PDFParser, PDFStreamParser
from pdfminer.pdftypes import PDFStream
from pdfminer.psparser import LIT, PSEOF

from qedge_dagster.extractors.pdf.tolerance import tolerated

__all__ = ["SearchedTable", "goes_on_after_its_table"]

_OBJECT = re.compile(rb"(?:^|endobj)\s*(\d{1,10})\s+(\d{1,5})\s+obj\b")
_TAIL_BYTES = 64 * 1024
_KEPT = ("Root", "Info", "Encrypt", "ID")


class SearchedTable(PDFXRef):
    """Of several definitions of an object the last one counts, and so with the entries of trailers: files are revised
    by additions at their end. The library's own search ends at the first trailer."""

    def load(self, parser: PDFParser) -> None:
        parser.seek(0)
        while True:
            try:
                start, line = parser.nextline()
            except PSEOF:
                return
            found = _OBJECT.search(line)
            after_stream = False
            with tolerated():  # the file may end inside an object
                if found is not None:
                    number, place = int(found[1]), start + found.start(1)
                    self.offsets[number] = None, place, int(found[2])
                    after_stream = self._look_into(parser, number, place)
                elif line.lstrip().startswith(b"trailer"):
                    self._add(_trailer(parser, start))
                else:
                    continue
            if not after_stream:
                parser.seek(start + len(line))

    def _look_into(self, parser: PDFParser, number: int, place: int) -> bool:
        """Take what streams have of objects and trailers. Returns whether the parser stands after a stream: what looks
        like an object inside is none."""
        parser.seek(place)
        for _ in range(3):
            parser.nexttoken()
        _, value = parser.nextobject()
        if not isinstance(value, PDFStream):
            return False
        if value.get("Type") is LIT("XRef"):
            self._add(value.attrs)
        elif value.get("Type") is LIT("ObjStm"):
            for index, contained in enumerate(_contained(value)):
                self.offsets[contained] = number, index, 0
        return True

    def _add(self, trailer: Mapping[str, Any]) -> None:
        self.trailer.update({key: trailer[key] for key in _KEPT if key in trailer})


def _trailer(parser: PDFParser, start: int) -> Mapping[str, Any]:
    parser.seek(start)
    parser.nexttoken()
    values: list[object] = []
    with suppress(PSEOF):
        values.append(parser.nextobject()[1])
    # Without what belongs after it, it is still on the stack.
    values += [value for _, value in parser.curstack]
    return next((value for value in values if isinstance(value, dict)), {})


def _contained(stream: PDFStream) -> Iterable[int]:
    """The numbers of the objects in a stream of them."""
    count = stream.get("N")
    parser = PDFStreamParser(stream.get_data())
    numbers: list[int] = []
    with suppress(PSEOF):
        while isinstance(count, int) and len(numbers) < count:
            number = parser.nextobject()[1]
            parser.nextobject()  # its place
            if not isinstance(number, int):
                break
            numbers.append(number)
    return numbers


def goes_on_after_its_table(stream: BinaryIO) -> bool:
    """Whether objects follow the last place where a table is named: the file was cut off within a revision."""
    size = stream.seek(0, 2)
    stream.seek(max(0, size - _TAIL_BYTES))
    tail = stream.read(_TAIL_BYTES)
    after = tail[max(0, tail.rfind(b"startxref")) :]
    return any(_OBJECT.search(line) for line in after.splitlines())
