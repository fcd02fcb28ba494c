"""The two reads of a document: once to hash it, once to extract it. What goes wrong gets its code here."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace

from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.base import ExtractionContext, Extractor
from qedge_dagster.extractors.isolation import Extraction, IsolatedExtractor
from qedge_dagster.hashing import ByteLimitExceeded, hash_stream
from qedge_dagster.pipeline.options import IngestionOptions
from qedge_dagster.pipeline.reading import CheckedOpen
from qedge_dagster.pipeline.stop import Stopped
from qedge_dagster.sources.base import SourceItem

__all__ = ["begin_extraction", "extract_item", "finish_extraction", "hash_item"]


def hash_item(
    item: SourceItem, options: IngestionOptions, check_stop: Callable[[], None] = lambda: None
) -> tuple[bytes, int]:
    """Hash and size of the bytes. Raises `QedgeError` 6052 for too many of them, 6053 where they cannot be read, and
    `Stopped` where `check_stop` does so meanwhile."""
    limit = options.max_document_bytes
    if item.size_bytes is not None and item.size_bytes > limit:
        raise QedgeError(6052, f"{item.size_bytes} bytes, the limit is {limit}")
    try:
        with item.open() as stream:
            return hash_stream(stream, limit, check_stop)
    except ByteLimitExceeded as error:
        raise QedgeError(6052, f"more than {limit} bytes") from error
    except (QedgeError, Stopped):
        raise
    except Exception as error:  # OSError, or whatever a remote store's client raises
        raise QedgeError(6053, getattr(error, "strerror", None) or type(error).__name__) from error


def extract_item(
    item: SourceItem, extractor: Extractor, source_hash: bytes, options: IngestionOptions
) -> ExtractedDocument:
    """What `extractor` makes of the bytes whose hash is `source_hash`.

    Raises `QedgeError` 6052 where they have grown too many, 6053 where they cannot be read or are no longer the same,
    6102 for a fault of the extractor, 6105 for a document without text, and what the extractor itself says.
    """
    with _checked(item, extractor, source_hash, options) as checked:
        document = extractor.extract(checked, ExtractionContext(options.normalize_text))
    return _with_text(document)


def begin_extraction(
    item: SourceItem, extractor: IsolatedExtractor, source_hash: bytes, options: IngestionOptions
) -> Extraction:
    """The same, not waited for: the bytes are read and checked, and the process has them. Raises 6052 and 6053."""
    extraction: Extraction | None = None
    try:
        with _checked(item, extractor, source_hash, options) as checked:
            extraction = extractor.begin(checked, ExtractionContext(options.normalize_text))
    except BaseException:
        if extraction is not None:  # of other bytes
            extraction.abandon()
        raise
    return extraction


def finish_extraction(extraction: Extraction) -> ExtractedDocument:
    """Wait for it. Raises as `extract_item`, for what is not the fault of the bytes' source."""
    return _with_text(extraction.result())


@contextmanager
def _checked(
    item: SourceItem, extractor: Extractor, source_hash: bytes, options: IngestionOptions
) -> Generator[SourceItem, None, None]:
    """The item for the extractor; what it has read is held against the hash at the end, also after a failure: else half
    a save would count as a broken file, settled until it changes."""
    checked = CheckedOpen(item.open, source_hash, options.max_document_bytes)
    try:
        yield replace(item, open=checked)
        checked.verify()
    except QedgeError:
        checked.verify()
        raise
    except ByteLimitExceeded as error:
        raise QedgeError(6052, f"grown to more than {options.max_document_bytes} bytes") from error
    except OSError as error:
        raise QedgeError(6053, error.strerror or type(error).__name__) from error
    except Exception as error:
        # The type alone: a parser's message may quote the document.
        raise QedgeError(6102, f"the {extractor.id} extractor raised {type(error).__name__}") from error


def _with_text(document: ExtractedDocument) -> ExtractedDocument:
    if not document.has_text_layer and document.incomplete is not None:
        raise document.incomplete.error()  # the rest may have text
    if not document.has_text_layer:
        what = (
            "there are pictures and no text"
            if document.page_count is None
            else f"none of {document.page_count} pages has text"
        )
        raise QedgeError(6105, "; ".join((what, *document.warnings)))
    return document
