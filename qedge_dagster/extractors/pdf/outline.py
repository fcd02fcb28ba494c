"""The outline (bookmarks), by the pages that its entries point to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pdfminer.pdftypes import PDFObjRef, dict_value, resolve1
from pdfminer.psparser import PSLiteral

from qedge_dagster.extractors.pdf.opening import PdfFile
from qedge_dagster.extractors.pdf.strings import decode_string
from qedge_dagster.extractors.pdf.tolerance import tolerated

__all__ = ["Outline", "OutlineEntry", "read_outline"]

_MAX_ENTRIES = 20_000
_MAX_LEVEL = 6
_MAX_TITLE = 500
_MAX_OF_PAGE = 500


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """`level` counts from 1; entries below the sixth have the sixth."""

    title: str
    level: int


@dataclass(frozen=True, slots=True)
class Outline:
    """Entries by the object of their page, and by its index where it is named by that."""

    by_object: dict[int, list[OutlineEntry]]
    by_index: dict[int, list[OutlineEntry]]

    def of_page(self, number: int, page_object: object) -> list[OutlineEntry]:
        """`number` counts from 1."""
        entries = self.by_object.get(page_object, []) if isinstance(page_object, int) else []
        return (entries + self.by_index.get(number - 1, []))[:_MAX_OF_PAGE]


def read_outline(document: PdfFile) -> Outline:
    """Empty if there is none. Hostile outlines have cycles, a million entries, or names that lead nowhere."""
    outline = Outline({}, {})
    destinations = _Destinations(document)
    for node, level in _nodes(document):
        target, title = None, ""
        with tolerated():
            title = decode_string(node.get("Title"))[:_MAX_TITLE].strip()
            target = destinations.page_of(node) if title else None
        entry = OutlineEntry(title, min(level, _MAX_LEVEL))
        if isinstance(target, PDFObjRef):
            outline.by_object.setdefault(target.objid, []).append(entry)
        elif isinstance(target, int):
            outline.by_index.setdefault(target, []).append(entry)
    return outline


def _nodes(document: PdfFile) -> Iterator[tuple[dict[Any, Any], int]]:
    """Depth first, each once."""
    pending: list[tuple[Any, int]] = []
    with tolerated():
        pending = [(dict_value(document.catalog.get("Outlines")).get("First"), 1)]
    visited: set[int] = set()
    while pending and len(visited) < _MAX_ENTRIES:
        reference, level = pending.pop()
        if not isinstance(reference, PDFObjRef) or reference.objid in visited:
            continue
        visited.add(reference.objid)
        node: dict[Any, Any] = {}
        with tolerated():
            node = dict_value(reference)
        yield node, level
        pending.append((node.get("Next"), level))
        pending.append((node.get("First"), level + 1))


class _Destinations:
    """The document's named places: a dictionary, or since PDF 1.2 a tree; read when the first is asked for."""

    def __init__(self, document: PdfFile) -> None:
        self._document = document
        self._names: dict[bytes, Any] | None = None

    def page_of(self, node: dict[Any, Any]) -> Any:
        """A reference to the page, or its index; None if the entry leads elsewhere."""
        destination = resolve1(node.get("Dest"))
        if destination is None:
            action = dict_value(node.get("A"))
            kind = resolve1(action.get("S"))
            if not isinstance(kind, PSLiteral) or kind.name != "GoTo":
                return None
            destination = resolve1(action.get("D"))
        if isinstance(destination, PSLiteral):
            destination = destination.name
        if isinstance(destination, str):
            destination = destination.encode("utf-8")
        if isinstance(destination, bytes):
            if self._names is None:
                self._names = {}
                with tolerated():
                    self._names.update(_named(self._document))
            destination = resolve1(self._names.get(destination))
        if isinstance(destination, dict):
            destination = resolve1(destination.get("D"))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        return destination[0] if isinstance(destination, list) and destination else None


def _named(document: PdfFile) -> Iterator[tuple[bytes, Any]]:
    for name, value in dict_value(document.catalog.get("Dests")).items():
        yield str(name).encode("utf-8"), value
    pending = [dict_value(document.catalog.get("Names")).get("Dests")]
    visited: set[int] = set()
    while pending and len(visited) < _MAX_ENTRIES:
        reference = pending.pop()
        if isinstance(reference, PDFObjRef):
            if reference.objid in visited:
                continue
            visited.add(reference.objid)
        node = dict_value(reference)
        names = resolve1(node.get("Names"))
        if isinstance(names, list):
            pairs: list[Any] = names
            yield from (pair for pair in zip(pairs[::2], pairs[1::2], strict=False) if isinstance(pair[0], bytes))
        kids = resolve1(node.get("Kids"))
        if isinstance(kids, list):
            pending += kids
