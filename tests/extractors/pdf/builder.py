"""PDF files from readable source: objects as they stand in a file, without lengths and offsets."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.extractors import ExtractionContext, PdfExtractor
from qedge_dagster.sources import SourceItem

__all__ = ["build", "extract", "fixture", "pages", "pdf_item", "source_of", "texts"]

_FIXTURES = Path(__file__).parents[2] / "fixtures" / "pdf"
_OBJECT = re.compile(r"^(\d+) 0 obj\n(.*?)\nendobj$", re.MULTILINE | re.DOTALL)
_STREAM = re.compile(r"(.*)>>\nstream\n(.*)\nendstream", re.DOTALL)


def build(source: str, *, version: str = "1.7") -> bytes:
    """The file: `source` has objects, and optionally `trailer` with a dictionary; object 1 is the catalog."""
    data = bytearray(f"%PDF-{version}\n".encode())
    offsets: dict[int, int] = {}
    for number, body in _OBJECT.findall(source):
        stream = _STREAM.fullmatch(body)
        if stream:
            body = f"{stream[1]}/Length {len(stream[2])} >>\nstream\n{stream[2]}\nendstream"
        offsets[int(number)] = len(data)
        data += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    start, size = len(data), max(offsets) + 1
    data += f"xref\n0 {size}\n0000000000 65535 f \n".encode()
    for number in range(1, size):
        data += (f"{offsets[number]:010} 00000 n \n" if number in offsets else "0000000000 00000 f \n").encode()
    entries = re.search(r"^trailer\n(.*)", source, re.MULTILINE)
    more = entries[1] if entries else ""
    data += f"trailer\n<< /Root 1 0 R /Size {size} {more} >>\nstartxref\n{start}\n%%EOF\n".encode("latin-1")
    return bytes(data)


def source_of(name: str) -> str:
    return (_FIXTURES / f"{name}.txt").read_text("latin-1")


def fixture(name: str) -> bytes:
    return build(source_of(name))


def pages(contents: Sequence[str], resources: str = "", more: str = "") -> str:
    """Source of a document with a page for each content stream, in Helvetica as `/F1`. Object 10 is the first page, 11
    its content, 12 the second page and so on."""
    kids = " ".join(f"{10 + 2 * index} 0 R" for index in range(len(contents)))
    parts = [
        f"1 0 obj\n<< /Type /Catalog /Pages 2 0 R {more} >>\nendobj",
        f"2 0 obj\n<< /Type /Pages /Count {len(contents)} /Kids [{kids}] /MediaBox [0 0 612 792] "
        f"/Resources << /Font << /F1 3 0 R >> {resources} >> >>\nendobj",
        "3 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj",
    ]
    for index, content in enumerate(contents):
        page = 10 + 2 * index
        parts.append(f"{page} 0 obj\n<< /Type /Page /Parent 2 0 R /Contents {page + 1} 0 R >>\nendobj")
        parts.append(f"{page + 1} 0 obj\n<< >>\nstream\n{content}\nendstream\nendobj")
    return "\n".join(parts)


def pdf_item(data: bytes, opener: Callable[[], Any] | None = None) -> SourceItem:
    return SourceItem("a.pdf", "application/pdf", opener or (lambda: BytesIO(data)))


def extract(data: bytes, **options: Any) -> ExtractedDocument:
    return PdfExtractor(**options).extract(pdf_item(data), ExtractionContext())


def texts(document: ExtractedDocument) -> list[tuple[str, int, int, str]]:
    """Kind, level, page and text of each block."""
    return [(b.kind, b.heading_level, b.page, document.text[b.start : b.end]) for b in document.blocks]
