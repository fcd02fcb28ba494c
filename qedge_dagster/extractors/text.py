"""Plain text: paragraphs between blank lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from qedge_dagster.documents import DocumentBlock, ExtractedDocument
from qedge_dagster.extractors.base import ExtractionContext
from qedge_dagster.extractors.decoding import read_text
from qedge_dagster.extractors.spans import visible_span
from qedge_dagster.sources.base import SourceItem

__all__ = ["TextExtractor"]

_SEPARATOR = re.compile(r"\n[^\S\n]*\n|\f")


@dataclass(frozen=True, slots=True)
class TextExtractor:
    """Any text in any encoding (`decoding`). `strict_utf8` refuses (6106) what has neither a BOM nor is UTF-8."""

    strict_utf8: bool = False

    id = "text"
    version = 1
    extensions = frozenset({".txt", ".text", ".log", ".csv"})
    media_types = frozenset({"text/plain", "text/csv"})

    @property
    def variant(self) -> str:
        return "strict-utf8" if self.strict_utf8 else ""

    def can_extract(self, item: SourceItem) -> bool:  # noqa: ARG002 - the contract's last word: any item will do
        return True

    def extract(self, item: SourceItem, context: ExtractionContext) -> ExtractedDocument:
        """Raises `QedgeError` 6104 for binary content, 6106 as said above."""
        decoded = read_text(item, context, self.strict_utf8)
        return ExtractedDocument(
            item.document_id,
            self.id,
            self.version,
            item.media_type,
            decoded.text,
            tuple(_paragraphs(decoded.text)),
            {"encoding": decoded.encoding},
            warnings=decoded.warnings,
        )


def _paragraphs(text: str) -> Iterator[DocumentBlock]:
    start = 0
    separators = (match.span() for match in _SEPARATOR.finditer(text))
    for end, following in chain(separators, [(len(text), 0)]):
        span = visible_span(text, start, end)
        if span:
            yield DocumentBlock("paragraph", *span)
        start = following
