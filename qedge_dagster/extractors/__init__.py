"""Bytes → `ExtractedDocument`."""

from __future__ import annotations

from qedge_dagster.extractors.base import ExtractionContext, Extractor, ExtractorRegistry, fingerprint
from qedge_dagster.extractors.markdown import MarkdownExtractor
from qedge_dagster.extractors.text import TextExtractor

__all__ = [
    "ExtractionContext",
    "Extractor",
    "ExtractorRegistry",
    "MarkdownExtractor",
    "TextExtractor",
    "default_extractors",
    "fingerprint",
]


def default_extractors() -> tuple[Extractor, ...]:
    """The built-in ones."""
    return TextExtractor(), MarkdownExtractor()
