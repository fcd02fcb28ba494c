"""Sources and extractors of this library as a reader of LlamaIndex."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document, MediaResource

from qedge_dagster.bridges.llamaindex.nodes import plain_values
from qedge_dagster.documents import DocumentBlock, ExtractedDocument
from qedge_dagster.errors import Failure, QedgeError
from qedge_dagster.extractors import default_extractors
from qedge_dagster.extractors.base import Extractor, ExtractorRegistry
from qedge_dagster.extractors.isolation import ExtractionLimits, ExtractionProcess, isolate
from qedge_dagster.pipeline.fetching import extract_item, hash_item
from qedge_dagster.pipeline.options import IngestionOptions
from qedge_dagster.sources.base import Source, SourceItem, UnlistedPart, check_item

__all__ = ["BLOCKS", "QedgeReader", "blocks_of"]

#: The entry of a document's metadata that holds its blocks, for `QedgeNodeParser`. No model is shown it.
BLOCKS = "qedge_blocks"


class QedgeReader(BaseReader):
    """One `Document` per document of `source`, in its order. Its id is that of the source; its metadata has
    `source_id`, `document_id`, `media_type`, `extractor_id`, what the extractor found, and the blocks of the text.

    PDF and Word documents are extracted in a process of their own, as in a pipeline. Given extractors come before the
    built-in ones. `options` hold the limits.
    """

    def __init__(
        self,
        source: Source,
        *,
        extractors: Sequence[Extractor] = (),
        options: IngestionOptions | None = None,
        on_failure: Callable[[str, Failure], None] | None = None,
    ) -> None:
        """`on_failure` is told of documents, or parts of the source, that cannot be read, and the rest is read; without
        it the first of them is raised."""
        self._source = source
        self._options = options or IngestionOptions()
        given = {extractor.id for extractor in extractors}
        self._extractors = [*extractors, *(each for each in default_extractors() if each.id not in given)]
        self._on_failure = on_failure

    def lazy_load_data(self, *args: Any, **load_kwargs: Any) -> Iterable[Document]:
        """Raises `QedgeError` 6051 for a source that cannot be listed, and without `on_failure` 6052, 6053 and 61xx for
        the first document that cannot be read."""
        limits = ExtractionLimits(self._options.extraction_seconds, self._options.extraction_memory)
        with closing(ExtractionProcess(limits)) as process:
            registry = ExtractorRegistry(isolate(extractor, process) for extractor in self._extractors)
            for item in self._source.items():
                try:
                    yield self._read(item, registry)
                except QedgeError as error:
                    if self._on_failure is None:
                        raise
                    name = item.location if isinstance(item, UnlistedPart) else item.document_id
                    self._on_failure(name, error.failure())

    def _read(self, item: SourceItem | UnlistedPart, registry: ExtractorRegistry) -> Document:
        if isinstance(item, UnlistedPart):
            raise QedgeError(6051, f"{item.location} could not be listed: {item.reason}")
        check_item(item)
        extractor = registry.resolve(item)
        digest, _ = hash_item(item, self._options)
        extracted = extract_item(item, extractor, digest, self._options)
        if extracted.incomplete is not None:
            raise extracted.incomplete.error()
        return _document(self._source.source_id, extracted)


def _document(source_id: str, extracted: ExtractedDocument) -> Document:
    metadata = plain_values(extracted.metadata) | {
        "source_id": source_id,
        "document_id": extracted.document_id,
        "media_type": extracted.media_type,
        "extractor_id": extracted.extractor_id,
        BLOCKS: json.dumps([(b.kind, b.start, b.end, b.heading_level, b.page) for b in extracted.blocks]),
    }
    return Document(
        id_=extracted.document_id,
        text_resource=MediaResource(text=extracted.text, mimetype=extracted.media_type),
        metadata=metadata,
        excluded_embed_metadata_keys=list(metadata),
        excluded_llm_metadata_keys=list(metadata),
    )


def blocks_of(metadata: dict[str, Any]) -> Iterator[DocumentBlock]:
    """The blocks that a document of this reader was given."""
    for kind, start, end, level, page in json.loads(metadata[BLOCKS]):
        yield DocumentBlock(kind, start, end, level, page)
