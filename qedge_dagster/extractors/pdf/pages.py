"""The pages of a document, one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pdfminer.pdfpage import PDFPage
from pdfminer.pdftypes import PDFObjRef, dict_value, list_value
from pdfminer.psparser import PSLiteral

from qedge_dagster.extractors.pdf.opening import PdfFile, object_numbers
from qedge_dagster.extractors.pdf.tolerance import tolerated

__all__ = ["iterate_pages"]

#: A short list may name the same page a million times.
_MAX_REPEATED = 10_000
_INHERITED = ("Resources", "MediaBox", "CropBox", "Rotate")


def iterate_pages(document: PdfFile) -> Iterator[PDFPage]:
    """In the order of the page tree; without a tree, in the order of the file. Broken nodes are left out."""
    found = False
    for page in _from_tree(document):
        found = True
        yield page
    if not found:
        yield from _from_objects(document)


def _from_tree(document: PdfFile) -> Iterator[PDFPage]:
    """Trees may be of any depth, and have cycles. A page that occurs again is another one, without headings."""
    visited: set[int] = set()
    repeated = 0
    pending: list[tuple[Any, Mapping[str, Any]]] = [(document.catalog.get("Pages"), {})]
    while pending:
        kid, inherited = pending.pop()
        number = kid.objid if isinstance(kid, PDFObjRef) else None
        with tolerated():
            node = dict_value(kid)
            attributes = {**inherited, **node}
            # `Type` is missing or wrong in real files: what has kids is no page.
            if "Kids" in node:
                # Of a node that is no object of its own, the list of kids may be one.
                kids = node["Kids"]
                ways = {way.objid for way in (kid, kids) if isinstance(way, PDFObjRef)}
                if visited.isdisjoint(ways):
                    visited |= ways
                    passed_on = {key: attributes[key] for key in _INHERITED if key in attributes}
                    pending += [(kid, passed_on) for kid in reversed(list_value(kids))]
            elif _type(node) in ("Page", None) and node:
                if number in visited:
                    repeated += 1
                    if repeated > _MAX_REPEATED:
                        continue
                    number = None
                elif number is not None:
                    visited.add(number)
                yield PDFPage(document, number, attributes, None)


def _from_objects(document: PdfFile) -> Iterator[PDFPage]:
    for number in sorted(_page_numbers(document)):
        with tolerated():
            yield PDFPage(document, number, dict_value(document.getobj(number)), None)
        document.forget()


def _page_numbers(document: PdfFile) -> set[int]:
    """Objects that are pages. They are looked at in the order of the file: streams of objects are read once then."""
    places: dict[int, tuple[int, int]] = {}
    for xref in document.xrefs:
        for number in object_numbers(xref):
            with tolerated():
                stream, place, _ = xref.get_pos(number)
                places.setdefault(number, (stream or 0, place))
    found: set[int] = set()
    for number in sorted(places, key=places.__getitem__):
        with tolerated():
            value = document.getobj(number)
            if isinstance(value, dict) and _type(value) == "Page":  # pyright: ignore[reportUnknownArgumentType]
                found.add(number)
        document.forget()
    return found


def _type(node: Mapping[Any, Any]) -> str | None:
    value = node.get("Type", node.get("type"))
    return value.name if isinstance(value, PSLiteral) and isinstance(value.name, str) else None
