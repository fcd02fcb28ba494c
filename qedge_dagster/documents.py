"""What an extractor hands to a chunker: one text buffer, and blocks that point into it."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Literal

from qedge_dagster.errors import Failure
from qedge_dagster.hashing import hash_fields

__all__ = ["UNKNOWN_PAGE", "BlockKind", "DocumentBlock", "ExtractedDocument", "media_type_for", "normalize_text"]

BlockKind = Literal["paragraph", "heading", "list_item", "table_row", "code", "caption", "quote", "footer"]

#: The page of text whose format knows no pages.
UNKNOWN_PAGE = -1

_MEDIA_TYPES = {
    ".txt": "text/plain",
    ".text": "text/plain",
    ".log": "text/plain",
    ".csv": "text/csv",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".pdf": "application/pdf",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".docm": "application/vnd.ms-word.document.macroEnabled.12",
    ".dotx": "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
    ".dotm": "application/vnd.ms-word.template.macroEnabled.12",
}


def media_type_for(name: str) -> str:
    """Media type of a bare extension (`.md` or `md`), file name or path; `application/octet-stream` if unknown.

    A fixed table, not the `mimetypes` module: that one reads the machine's registry and differs between machines.
    """
    leaf = PurePosixPath(name.replace("\\", "/")).name.lower()
    suffix = leaf[leaf.rfind(".") :] if "." in leaf else "." + leaf
    return _MEDIA_TYPES.get(suffix, "application/octet-stream")


def normalize_text(text: str) -> str:
    """Strip a BOM, turn CRLF and lone CR into LF, compose to NFC. Idempotent."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", text)


@dataclass(frozen=True, slots=True)
class DocumentBlock:
    """A stretch `[start, end)` of the document's text, in code points; `heading_level` is 0 for all but headings."""

    kind: BlockKind
    start: int
    end: int
    heading_level: int = 0
    page: int = UNKNOWN_PAGE


@dataclass(frozen=True, slots=True)
class ExtractedDocument:
    """Normalised text with its structure. Blocks are in order and do not overlap; text between them is not lost.

    `incomplete` says why the document could not be read to its end: it fails, and what was read of it is indexed.
    """

    document_id: str
    extractor_id: str
    extractor_version: int
    media_type: str
    text: str
    blocks: tuple[DocumentBlock, ...]
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    page_count: int | None = None
    has_text_layer: bool = True
    warnings: tuple[str, ...] = ()
    incomplete: Failure | None = None

    def version(self) -> bytes:
        """Data version of this stage's output: hash of text, blocks, metadata and page facts; 16 bytes.

        Neither the document's id nor its bytes take part, so a re-saved file with the same text keeps its version.
        """
        return hash_fields(
            (
                self.text,
                *((b.kind, b.start, b.end, b.heading_level, b.page) for b in self.blocks),
                sorted((str(k), repr(v)) for k, v in self.metadata.items()),
                self.page_count,
                self.has_text_layer,
            )
        )
