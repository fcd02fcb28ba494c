"""Items made of bytes."""

from __future__ import annotations

import io

from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.extractors import ExtractionContext, MarkdownExtractor, TextExtractor
from qedge_dagster.sources import SourceItem

__all__ = ["extract_markdown", "extract_text", "item"]


def item(content: bytes, name: str = "a.txt", media_type: str = "text/plain") -> SourceItem:
    return SourceItem(name, media_type, lambda: io.BytesIO(content))


def extract_text(content: bytes, *, strict_utf8: bool = False, normalize: bool = True) -> ExtractedDocument:
    return TextExtractor(strict_utf8).extract(item(content), ExtractionContext(normalize))


def extract_markdown(content: bytes | str, *, normalize: bool = True) -> ExtractedDocument:
    data = content.encode() if isinstance(content, str) else content
    return MarkdownExtractor().extract(item(data, "a.md", "text/markdown"), ExtractionContext(normalize))
