"""Opening a file: passwords, damage, and what is no PDF at all."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import islice
from typing import BinaryIO

from pdfminer.pdfdocument import (
    PDFBaseXRef,
    PDFDocument,
    PDFEncryptionError,
    PDFNoValidXRef,
    PDFPasswordIncorrect,
)
from pdfminer.pdfparser import PDFParser, PDFStreamParser
from pdfminer.pdftypes import PDFObjRef, PDFStream, int_value
from pdfminer.psparser import LIT

from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.disguise import content_of
from qedge_dagster.extractors.pdf.rebuilding import SearchedTable, goes_on_after_its_table
from qedge_dagster.extractors.pdf.streams import BoundedParser
from qedge_dagster.extractors.pdf.tolerance import OUTRIGHT, tolerated

__all__ = ["PdfFile", "object_numbers", "open_pdf"]

_HEAD_BYTES = 1024
_MAX_SECTIONS = 300
_MAX_OBJECTS = 512
_MAX_OBJECT_STREAMS = 16
_MAX_NUMBERS = 100_000


class PdfFile(PDFDocument):
    """A document whose memory does not grow with the pages read.

    With `rebuild` its table of objects is not read but made anew, by a search through the file.
    """

    def __init__(self, stream: BinaryIO, password: str, rebuild: bool) -> None:
        self.rebuilt = rebuild
        self._sections: set[int] = set()
        self._stream = stream
        super().__init__(BoundedParser(stream), password, fallback=False)

    def find_xref(self, parser: PDFParser) -> int:
        if self.rebuilt:
            return 0
        start = super().find_xref(parser)
        if goes_on_after_its_table(self._stream):
            raise PDFNoValidXRef
        return start

    def read_xref_from(self, parser: PDFParser, start: int, xrefs: list[PDFBaseXRef]) -> None:
        """Sections name the one before them: each is read once, and a chain of thousands not by recursion. What
        broken ones before the last would tell is searched for."""
        if self.rebuilt:
            self._search(parser, xrefs)
            return
        if start in self._sections:
            return
        self._sections.add(start)
        try:
            if len(self._sections) > _MAX_SECTIONS:
                raise PDFNoValidXRef
            super().read_xref_from(parser, start, xrefs)
        except PDFNoValidXRef:
            if not xrefs:
                raise
            self._search(parser, xrefs)

    def _search(self, parser: PDFParser, xrefs: list[PDFBaseXRef]) -> None:
        """Look for the objects. Where there is no trailer, a catalog will do, or the pages alone."""
        parser.fallback = True
        table = SearchedTable()
        table.load(parser)
        xrefs.append(table)
        trailer = table.get_trailer()
        for number in [] if "Root" in trailer else object_numbers(table):
            with tolerated():
                value = self.getobj(number)
                if isinstance(value, dict) and value.get("Type") is LIT("Catalog"):  # pyright: ignore[reportUnknownMemberType]
                    trailer["Root"] = PDFObjRef(self, number)
        if table.offsets:
            trailer.setdefault("Root", {})
        # Strings of an encrypted file were read before the key was known.
        self._cached_objs.clear()
        self._parsed_objs.clear()

    def _get_objects(self, stream: PDFStream) -> tuple[list[object], int]:
        """Of a damaged stream of objects, those before the fault: the library would try again for each object of it."""
        objects: list[object] = []
        count = 0
        with tolerated():
            count = int_value(stream["N"])
            parser = PDFStreamParser(stream.get_data())
            parser.set_document(self)
            while True:
                objects.append(parser.nextobject()[1])
        return objects, count

    def forget(self) -> None:
        """Let go of objects kept for later use: all streams, and the rest when there are many."""
        kept = self._cached_objs
        for number in [number for number, (value, _) in kept.items() if isinstance(value, PDFStream)]:
            del kept[number]
        if len(kept) > _MAX_OBJECTS:
            kept.clear()
        while len(self._parsed_objs) > _MAX_OBJECT_STREAMS:
            del self._parsed_objs[next(iter(self._parsed_objs))]


def object_numbers(table: PDFBaseXRef) -> list[int]:
    """The objects that a table says there are, in order: a broken one may claim a thousand million of them."""
    numbers: set[int] = set()
    with tolerated():
        numbers.update(number for number in islice(table.get_objids(), _MAX_NUMBERS) if type(number) is int)
    return sorted(numbers)


def open_pdf(stream: BinaryIO, passwords: Sequence[str], rebuild: bool = False) -> PdfFile:
    """Try the empty password, then the others. Raises `QedgeError` 6103, 6104."""
    _silence()
    head = stream.read(_HEAD_BYTES)
    if not head.strip(b"\0\t\n\f\r "):
        raise QedgeError(6104, "the file is empty" if not head else "the file begins with nothing but blanks")
    if b"%PDF-" not in head:
        what = content_of(head)
        if what is not None:
            raise QedgeError(6104, f"the content is {what}, not a PDF document")
    # Twice the same password would only cost time.
    for password in dict.fromkeys(("", *passwords)):
        stream.seek(0)
        try:
            return PdfFile(stream, password, rebuild)
        except PDFPasswordIncorrect:
            continue
        except PDFEncryptionError:
            raise QedgeError(
                6103,
                "the file is encrypted by a method that takes no password, or is not supported",
                remedy="save the file without encryption",
            ) from None
        except OUTRIGHT:
            raise
        except Exception:
            if not rebuild:
                return open_pdf(_rewound(stream), passwords, rebuild=True)
            lacks = "" if b"%PDF-" in head else ", and it does not begin as one"
            raise QedgeError(
                6104, f"no PDF document can be made out: the file is damaged or was cut off{lacks}"
            ) from None
    tried = "none of the passwords given opens it" if passwords else "it needs a password"
    raise QedgeError(6103, f"the file is encrypted: {tried}")


def _rewound(stream: BinaryIO) -> BinaryIO:
    stream.seek(0)
    return stream


def _silence() -> None:
    """The library logs what it reads, and complains of files that are mended here. A level that the user set stays."""
    logger = logging.getLogger("pdfminer")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL + 1)
