"""Bytes → `ExtractedDocument`."""

from __future__ import annotations

from importlib.util import find_spec

from qedge_dagster.extractors.base import ExtractionContext, Extractor, ExtractorRegistry, fingerprint
from qedge_dagster.extractors.markdown import MarkdownExtractor
from qedge_dagster.extractors.pdf import PdfExtractor
from qedge_dagster.extractors.text import TextExtractor

__all__ = [
    "ExtractionContext",
    "Extractor",
    "ExtractorRegistry",
    "MarkdownExtractor",
    "PdfExtractor",
    "TextExtractor",
    "default_extractors",
    "fingerprint",
]


def default_extractors() -> tuple[Extractor, ...]:
    """The built-in ones, as far as the libraries they need are installed."""
    extractors: list[Extractor] = [TextExtractor(), MarkdownExtractor()]
    if find_spec("pdfminer") is not None:
        extractors.append(PdfExtractor())
    return tuple(extractors)
