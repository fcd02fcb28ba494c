"""Bytes → `ExtractedDocument`.

The extractors are loaded on first use: the process that extracts (`worker`) does not wait for parsers it has no use of.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from qedge_dagster.extractors.base import ExtractionContext, Extractor, ExtractorRegistry, fingerprint
from qedge_dagster.lazy import names_of

if TYPE_CHECKING:
    from qedge_dagster.extractors.docx import DocxExtractor
    from qedge_dagster.extractors.markdown import MarkdownExtractor
    from qedge_dagster.extractors.pdf import PdfExtractor, ReadingOrder
    from qedge_dagster.extractors.text import TextExtractor

__all__ = [
    "DocxExtractor",
    "ExtractionContext",
    "Extractor",
    "ExtractorRegistry",
    "MarkdownExtractor",
    "PdfExtractor",
    "TextExtractor",
    "default_extractors",
    "fingerprint",
]

_HOMES = {"DocxExtractor": "docx", "MarkdownExtractor": "markdown", "PdfExtractor": "pdf", "TextExtractor": "text"}


def default_extractors(
    *,
    strict_utf8: bool = False,
    pdf_reading_order: ReadingOrder = "content",
    pdf_join_hyphens: bool = True,
    pdf_page_budget: float = 20.0,
    pdf_passwords: Sequence[str] = (),
    docx_notes: bool = True,
    docx_text_boxes: bool = True,
    docx_headers_footers: bool = False,
    docx_hidden_text: bool = False,
) -> tuple[Extractor, ...]:
    """The built-in ones, as far as the libraries they need are installed. What begins with `pdf_` and `docx_` are the
    options of `PdfExtractor` and `DocxExtractor`."""
    from qedge_dagster.extractors.docx import DocxExtractor
    from qedge_dagster.extractors.markdown import MarkdownExtractor
    from qedge_dagster.extractors.pdf import PdfExtractor
    from qedge_dagster.extractors.text import TextExtractor

    extractors: list[Extractor] = [TextExtractor(strict_utf8=strict_utf8), MarkdownExtractor(strict_utf8=strict_utf8)]
    if find_spec("pdfminer") is not None:
        extractors.append(PdfExtractor(pdf_reading_order, pdf_passwords, pdf_join_hyphens, pdf_page_budget))
    if find_spec("docx2txt") is not None:
        extractors.append(DocxExtractor(docx_notes, docx_text_boxes, docx_headers_footers, docx_hidden_text))
    return tuple(extractors)


__getattr__ = names_of(__name__, _HOMES)
