"""A chunk as the collection stores it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["COLUMNS", "INTEGER_COLUMNS", "ORDER", "VECTORS_OF_OTHERS", "StoredChunk"]

#: In the order of `StoredChunk`'s fields; `heading_path` is the column of the breadcrumb.
COLUMNS = (
    "key",
    "source_id",
    "document_id",
    "ordinal",
    "text",
    "heading_path",
    "content_hash",
    "char_start",
    "char_end",
    "token_count",
    "page",
    "block_kind",
    "extractor_id",
    "media_type",
    "created_utc",
)

INTEGER_COLUMNS = frozenset({"ordinal", "char_start", "char_end", "token_count", "page"})

#: Reading order. Row ids take no part: they differ between two databases of the same content.
ORDER = "source_id, document_id, ordinal, key"

#: Stands for the extractor in rows whose vectors another library brought: it may have embedded more than their text, so
#: they are never taken for the vector of a text. No run reads their documents, which have no hash.
VECTORS_OF_OTHERS = "bridge"

# As the chunker joins them; not imported, since reading needs nothing else of chunking, and its libraries load slowly.
_BREADCRUMB_SEPARATOR = " \u203a "


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """Every column of a row but its row id and its vector. Offsets are code points of the document's text, which
    equals `text` between them except where a table's header rows are repeated. `page` is 1-based, -1 if unknown;
    `content_hash` has 16 bytes."""

    key: str
    source_id: str
    document_id: str
    ordinal: int
    text: str
    breadcrumb: str
    content_hash: bytes
    char_start: int
    char_end: int
    token_count: int
    page: int
    block_kind: str
    extractor_id: str
    media_type: str
    created_utc: str

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> StoredChunk:
        """`row` holds the values of `COLUMNS`."""
        return cls(*row)

    @property
    def heading_path(self) -> tuple[str, ...]:
        """The breadcrumb's headings, outermost first."""
        return tuple(self.breadcrumb.split(_BREADCRUMB_SEPARATOR)) if self.breadcrumb else ()
