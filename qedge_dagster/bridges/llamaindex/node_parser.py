"""Chunkers of this library as a node parser of LlamaIndex."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.node_parser.interface import TextSplitter
from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import BaseNode, Document, MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode

from qedge_dagster.bridges.llamaindex.nodes import chunk_metadata, text_node
from qedge_dagster.bridges.llamaindex.reader import BLOCKS, blocks_of
from qedge_dagster.chunking import make_chunker
from qedge_dagster.chunking.base import ChunkBudget, ChunkDraft, Chunker, ChunkingOptions
from qedge_dagster.documents import ExtractedDocument, media_type_for
from qedge_dagster.embedding import default_embedder
from qedge_dagster.embedding.base import Embedder
from qedge_dagster.extractors import ExtractionContext, MarkdownExtractor, TextExtractor
from qedge_dagster.hashing import chunk_key, hash_fields
from qedge_dagster.sources.base import SourceItem

__all__ = ["QedgeNodeParser"]

_MARKDOWN = media_type_for(".md")
#: Where readers of LlamaIndex put a document's name.
_NAMES = ("document_id", "file_path", "file_name")


class QedgeNodeParser(TextSplitter):
    """Nodes are what a pipeline with the same embedder and options would cut, with offsets, heading paths and pages.

    Documents of `QedgeReader` are cut along the blocks that its extractor found. Of any other the text is read as
    Markdown where its type or name says so, else as plain text; offsets are those of its text.

    A node's id is the key that the chunk has in a collection, so the same text of the same document has the same id in
    every run; an `id_func` of yours takes its place. For the model a node is its heading path and its text, which the
    budget counts; other metadata is kept from it.
    """

    recipe: str = Field(default="", description="Hash of all that the cutting depends on.")
    _chunker: Chunker = PrivateAttr()

    def __init__(
        self,
        embedder: Embedder | None = None,
        chunking: ChunkingOptions | None = None,
        *,
        include_metadata: bool = True,
        include_prev_next_rel: bool = True,
        id_func: Callable[[int, BaseNode], str] = default_id_func,
    ) -> None:
        """The budget is that of `embedder`, by default the one of the extra `[onnx]`; no model is loaded.

        Raises `QedgeError` 6001, 6003, 6005 or 6153 for options that do not fit it, 6208 without an embedder.
        """
        embedder, chunking = embedder or default_embedder(), chunking or ChunkingOptions()
        tokenizer = embedder.tokenizer
        budget = ChunkBudget.resolve(chunking, embedder.profile, tokenizer)
        assert tokenizer is not None  # resolve has raised 6001
        chunker = make_chunker(chunking, budget, tokenizer)
        facts = (chunker.id, chunker.version, *chunker.recipe_fields(), tokenizer.id)
        super().__init__(
            include_metadata=include_metadata, include_prev_next_rel=include_prev_next_rel, id_func=id_func
        )
        self.recipe = hash_fields(facts).hex()
        self._chunker = chunker

    @classmethod
    def class_name(cls) -> str:
        return "QedgeNodeParser"

    def split_text(self, text: str) -> list[str]:
        """The chunks of a plain text, without their places."""
        document = _extract("text", text, TextExtractor())
        return [draft.text for draft in self._chunker.chunk(document, _no_warning)]

    def _parse_nodes(self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any) -> list[BaseNode]:
        return [node for document in nodes for node in self._cut(document)]

    def _postprocess_parsed_nodes(self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]) -> list[BaseNode]:
        """Nothing is left to do. The base would look for the place of each text, and take the first of equal ones."""
        return nodes

    def _cut(self, document: BaseNode) -> list[TextNode]:
        text = document.get_content(metadata_mode=MetadataMode.NONE)
        extracted = _extracted(document, text)
        # An extractor may leave something out at the start: a BOM, front matter.
        shift = len(text) - len(extracted.text) if text.endswith(extracted.text) else None
        source = document.as_related_node_info()
        source.metadata.pop(BLOCKS, None)
        kept = {name: value for name, value in document.metadata.items() if name != BLOCKS}
        drafts = self._chunker.chunk(extracted, _no_warning)
        ids = self._ids(document, extracted, drafts)
        nodes: list[TextNode] = []
        for node_id, draft in zip(ids, drafts, strict=True):
            metadata = {**(kept if self.include_metadata else {}), **chunk_metadata(draft)}
            start, end = (None, None) if shift is None else (draft.char_start + shift, draft.char_end + shift)
            relationships = {NodeRelationship.SOURCE: document.source_node or source}
            nodes.append(text_node(node_id, draft.text, metadata, start, end, relationships))
        if self.include_prev_next_rel:
            for before, after in pairwise(nodes):
                before.relationships[NodeRelationship.NEXT] = _related(after)
                after.relationships[NodeRelationship.PREVIOUS] = _related(before)
        return nodes

    def _ids(self, document: BaseNode, extracted: ExtractedDocument, drafts: Sequence[ChunkDraft]) -> list[str]:
        if self.id_func is not default_id_func:
            return [self.id_func(index, document) for index in range(len(drafts))]
        source_id = str(document.metadata.get("source_id", ""))
        seen: Counter[bytes] = Counter()
        ids: list[str] = []
        for draft in drafts:
            digest = draft.content_hash
            ids.append(chunk_key(source_id, extracted.document_id, digest, seen[digest]))
            seen[digest] += 1
        return ids


def _extracted(document: BaseNode, text: str) -> ExtractedDocument:
    metadata = document.metadata
    if BLOCKS in metadata:
        return ExtractedDocument(
            document.node_id, str(metadata.get("extractor_id", "")), 0, "", text, tuple(blocks_of(metadata))
        )
    resource = document.text_resource if isinstance(document, Document) else None
    names = [str(metadata[name]) for name in _NAMES if metadata.get(name)]
    is_markdown = (resource is not None and resource.mimetype == _MARKDOWN) or _MARKDOWN in map(media_type_for, names)
    return _extract(document.node_id, text, MarkdownExtractor() if is_markdown else TextExtractor())


def _extract(document_id: str, text: str, extractor: MarkdownExtractor | TextExtractor) -> ExtractedDocument:
    """Not normalised: offsets are to be those of the text that was given."""
    content = text.encode()
    item = SourceItem(document_id, "text/plain", lambda: io.BytesIO(content))
    return extractor.extract(item, ExtractionContext(normalize_text=False))


def _related(node: TextNode) -> RelatedNodeInfo:
    """Without its metadata, which would be stored three times over."""
    return RelatedNodeInfo(node_id=node.node_id, node_type=node.get_type(), hash=node.hash)


def _no_warning(_: str) -> None:
    pass
