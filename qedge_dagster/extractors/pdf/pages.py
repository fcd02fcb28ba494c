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
    """Trees may be of any depth, and have cycles."""
    visited: set[int] = set()
    pending: list[tuple[Any, Mapping[str, Any]]] = [(document.catalog.get("Pages"), {})]
    while pending:
        reference, inherited = pending.pop()
        if not isinstance(reference, PDFObjRef) or reference.objid in visited:
            continue
        visited.add(reference.objid)
        with tolerated():
            node = dict_value(reference)
            attributes = {**inherited, **node}
            # `Type` is missing or wrong in real files: what has kids is no page.
            if "Kids" in node:
                passed_on = {key: attributes[key] for key in _INHERITED if key in attributes}
                pending += [(kid, passed_on) for kid in reversed(list_value(node["Kids"]))]
            elif _type(node) in ("Page", None) and node:
                yield PDFPage(document, reference.objid, attributes, None)


def _from_objects(document: PdfFile) -> Iterator[PDFPage]:
    seen: set[int] = set()
    for xref in document.xrefs:
        for number in object_numbers(xref):
            if number in seen:
                continue
            seen.add(number)
            with tolerated():
                value = document.getobj(number)
                if isinstance(value, dict) and _type(value) == "Page":  # pyright: ignore[reportUnknownArgumentType]
                    yield PDFPage(document, number, value, None)
            document.forget()


def _type(node: Mapping[Any, Any]) -> str | None:
    value = node.get("Type", node.get("type"))
    return value.name if isinstance(value, PSLiteral) and isinstance(value.name, str) else None
