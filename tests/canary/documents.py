"""Documents that say one word over and over, and parts of the pipeline that fail on some of them and quote them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from unittest import mock

import apsw

from qedge_dagster import ChunkingOptions, ItemsSource
from qedge_dagster.chunking.base import ChunkDraft
from qedge_dagster.chunking.chunkers import RegionChunker
from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.embedding.base import EmbeddingBatch
from qedge_dagster.extractors import TextExtractor
from qedge_dagster.extractors.base import ExtractionContext
from qedge_dagster.pipeline import IngestionPipeline
from qedge_dagster.sources import SourceItem
from tests.extractors.docx.builder import archive
from tests.extractors.docx.builder import build as build_docx
from tests.extractors.pdf.builder import build as build_pdf
from tests.extractors.pdf.builder import pages
from tests.pipeline.support import CountingEmbedder, write

__all__ = [
    "CHUNKING",
    "OUTCOMES",
    "WORD",
    "QuotingEmbedder",
    "QuotingExtractor",
    "quoting_chunker",
    "refuse_rows",
    "write_documents",
]

WORD = "quorvanex"
CHUNKING = ChunkingOptions(overflow="throw")

_PROSE = f"The {WORD} is {WORD}. {WORD}, {WORD}!"
_PAGE = pages([f"BT /F1 12 Tf 72 720 Td ({_PROSE}) Tj ET"])
_INFO = f"5 0 obj\n<< /Title ({WORD}) >>\nendobj\ntrailer\n/Info 5 0 R\n"
_PARAGRAPH = f'<w:p><w:pPr><w:pStyle w:val="{WORD}"/></w:pPr><w:r><w:t>{_PROSE}</w:t></w:r></w:p>'
_MARKDOWN = f"---\ntitle: {WORD}\n---\n# {WORD}\n\n- {WORD}\n\n[{WORD}](http://{WORD})\n\n{_PROSE}\n"

_FILES: dict[str, tuple[str | bytes, int | None]] = {
    "good.docx": (build_docx(_PARAGRAPH), None),
    "good.md": (_MARKDOWN, None),
    "good.pdf": (build_pdf(f"{_PAGE}\n{_INFO}"), None),
    "good.txt": (_PROSE, None),
    "good of another encoding.txt": (f"{_PROSE} café ".encode("latin-1") + b"\x81\x00", None),
    "binary.txt": (b"\x7fELF\x02\x01\x01" + f"{WORD}\0\1\2\3".encode() * 500, 6104),
    "broken.docx": (build_docx("", more={"word/document.xml": f"<{WORD}>{_PROSE}"}), 6104),
    "broken.pdf": (f"%PDF-1.7\n{_PROSE}\n".encode() * 50, 6104),
    "no document.docx": (archive({f"{WORD}.xml": _PROSE}), 6104),
    "no text.pdf": (build_pdf(_PAGE.replace("Tj ET", f"{WORD} ET")), 6105),
    "chunker.txt": (f"chunk {_PROSE}", 6102),
    "embedder.txt": (f"embed {_PROSE}", 6206),
    "extractor.txt": (f"extract {_PROSE}", 6102),
    "long.txt": (" ".join([WORD] * 400), 6152),
    "unknown.xyz": (_PROSE, 6101),
    "writing.txt": (f"write {_PROSE}", 6207),
}

#: The code of each document, None where it is indexed.
OUTCOMES = {name: code for name, (_, code) in _FILES.items()}


class QuotingExtractor(TextExtractor):
    def extract(self, item: SourceItem, context: ExtractionContext) -> ExtractedDocument:
        document = super().extract(item, context)
        if document.text.startswith("extract"):
            raise ValueError(f"unexpected {document.text!r}") from KeyError(document.text)
        return document


class QuotingEmbedder(CountingEmbedder):
    def embed_documents(self, texts: Sequence[str]) -> EmbeddingBatch:
        for text in texts:
            if text.startswith("embed"):
                raise ConnectionError(f"400 Bad Request: {text}")
        return super().embed_documents(texts)


def quoting_chunker() -> mock._patch[object]:
    """A context with a fault in the chunker."""
    chunk = RegionChunker.chunk

    def faulty(self: RegionChunker, document: ExtractedDocument, warn: Callable[[str], None]) -> list[ChunkDraft]:
        if document.text.startswith("chunk"):
            raise IndexError(document.text)
        return chunk(self, document, warn)

    return mock.patch.object(RegionChunker, "chunk", faulty)


def write_documents(folder: Path) -> None:
    write(folder, {name: content for name, (content, _) in _FILES.items()})


def refuse_rows(pipeline: IngestionPipeline, database: Path, collection: str) -> None:
    """Make the collection, and have it take no row of one of the documents."""
    pipeline.run(ItemsSource([], "s"))
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute(
            f"CREATE TRIGGER guard BEFORE INSERT ON {collection} WHEN NEW.document_id = 'writing.txt'"
            " BEGIN SELECT RAISE(ABORT, 'not here'); END"
        )
