"""Text that is laid over a page: what was filled into the fields of a form, and notes written on the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pdfminer.pdfpage import PDFPage
from pdfminer.pdftypes import PDFObjRef, PDFStream, dict_value, list_value, resolve1
from pdfminer.psparser import LIT

from qedge_dagster.extractors.pdf.fragments import clean
from qedge_dagster.extractors.pdf.strings import decode_text
from qedge_dagster.extractors.pdf.tolerance import tolerated

__all__ = ["Annotations"]

#: Of a page, and of the fields above a field.
_MAX_OF_PAGE = 10_000
_MAX_DEPTH = 32
# Flags of an annotation and of a field.
_UNSEEN = 1 << 1 | 1 << 5
_PASSWORD = 1 << 13


class Annotations:
    """Reads those of one page after the other; a field that has a place on several pages is read on the first."""

    def __init__(self) -> None:
        self._fields: set[int] = set()

    def read(self, page: PDFPage) -> list[str]:
        """Texts, in the order of the file. Hidden ones and passwords are left out, as are empty ones."""
        found: list[str] = []
        references: list[Any] = []
        with tolerated():
            references = list(list_value(page.annots))[:_MAX_OF_PAGE]
        for reference in references:
            with tolerated():
                text = self._text(reference)
                lines = (" ".join(clean(line).split()) for line in text.split("\n"))
                text = "\n".join(filter(None, lines))
                if text:
                    found.append(text)
        return found

    def _text(self, reference: Any) -> str:
        annotation: Mapping[str, Any] = dict_value(reference)
        flags = resolve1(annotation.get("F"))
        if isinstance(flags, int) and flags & _UNSEEN:
            return ""
        kind = resolve1(annotation.get("Subtype"))
        if kind is LIT("FreeText"):
            return decode_text(annotation.get("Contents"))
        return self._field(reference) if kind is LIT("Widget") else ""

    def _field(self, reference: Any) -> str:
        """The value of a field, the first time; a field has what it does not say from those above it."""
        entries: dict[str, Any] = {}
        for number, node in _upwards(reference):
            if "V" in node and "V" not in entries and number is not None:
                if number in self._fields:
                    return ""
                self._fields.add(number)
            entries = {**node, **entries}
        flags = resolve1(entries.get("Ff"))
        if isinstance(flags, int) and flags & _PASSWORD and resolve1(entries.get("FT")) is LIT("Tx"):
            return ""
        if resolve1(entries.get("FT")) not in (LIT("Tx"), LIT("Ch")):
            return ""
        value = resolve1(entries.get("V"))
        if isinstance(value, PDFStream):
            value = value.get_data()
        values: list[Any] = value if isinstance(value, list) else [value]
        return "\n".join(map(decode_text, values))


def _upwards(reference: Any) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    """A field and those above it, each with the number of its object if it is one."""
    for _ in range(_MAX_DEPTH):
        node = resolve1(reference)
        if not isinstance(node, dict):
            return
        yield reference.objid if isinstance(reference, PDFObjRef) else None, node
        reference = node.get("Parent")
