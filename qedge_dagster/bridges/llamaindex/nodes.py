"""Chunks of this library and nodes of LlamaIndex, each as the other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, ObjectType, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from qedge_dagster.chunking.base import ChunkDraft, embed_text
from qedge_dagster.chunking.breadcrumbs import SEPARATOR, join_path, sanitize_heading
from qedge_dagster.collection import StoredChunk
from qedge_dagster.documents import UNKNOWN_PAGE, BlockKind
from qedge_dagster.errors import QedgeError

__all__ = [
    "chunk_metadata",
    "content_of_node",
    "document_id_of",
    "draft_of_node",
    "draft_of_row",
    "node_of_chunk",
    "plain_values",
    "text_node",
]

#: The one entry of the metadata that is embedded and shown to a language model: what stands before the text.
HEADING_PATH = "heading_path"

_KINDS: dict[str, BlockKind] = {
    kind: kind for kind in ("paragraph", "heading", "list_item", "table_row", "code", "caption", "quote", "footer")
}


def text_node(
    node_id: str,
    text: str,
    metadata: Mapping[str, Any],
    start: int | None,
    end: int | None,
    relationships: Mapping[NodeRelationship, RelatedNodeInfo],
) -> TextNode:
    """A node whose text for the model is exactly what the pipeline embeds: heading path, blank line, text."""
    others = [name for name in metadata if name != HEADING_PATH]
    return TextNode(
        id_=node_id,
        text=text,
        metadata=dict(metadata),
        start_char_idx=start,
        end_char_idx=end,
        relationships=dict(relationships),
        excluded_embed_metadata_keys=others,
        excluded_llm_metadata_keys=list(others),
        metadata_template="{value}",
    )


def chunk_metadata(chunk: ChunkDraft | StoredChunk) -> dict[str, Any]:
    """What a node is told of its chunk; nothing of what is not known."""
    kind = chunk.kind if isinstance(chunk, ChunkDraft) else chunk.block_kind
    facts: dict[str, Any] = {"ordinal": chunk.ordinal, "token_count": chunk.token_count, "block_kind": kind}
    if chunk.breadcrumb:
        facts[HEADING_PATH] = chunk.breadcrumb
    if chunk.page != UNKNOWN_PAGE:
        facts["page"] = chunk.page
    return facts


def node_of_chunk(chunk: StoredChunk, content: str | None = None) -> BaseNode:
    """`content` is what was kept of a node that LlamaIndex wrote; without it the chunk was ingested, and its key is
    the node's id."""
    if content is not None:
        return metadata_dict_to_node(json.loads(content), text=chunk.text)
    metadata = {
        "source_id": chunk.source_id,
        "document_id": chunk.document_id,
        "media_type": chunk.media_type,
        "extractor_id": chunk.extractor_id,
        **chunk_metadata(chunk),
    }
    document = RelatedNodeInfo(node_id=chunk.document_id, node_type=ObjectType.DOCUMENT)
    return text_node(
        chunk.key, chunk.text, metadata, chunk.char_start, chunk.char_end, {NodeRelationship.SOURCE: document}
    )


def document_id_of(node: BaseNode) -> str:
    """A node of no document is one by itself."""
    return node.ref_doc_id or node.node_id


def content_of_node(node: BaseNode) -> str:
    """All of the node but its text and vector. Raises `QedgeError` 6005 for metadata that JSON does not hold."""
    try:
        held = node_to_metadata_dict(node, remove_text=True)
        return json.dumps({name: held[name] for name in ("_node_content", "_node_type")})
    except (TypeError, ValueError) as error:
        raise QedgeError(6005, f"node {node.node_id!r} cannot be written as JSON: {type(error).__name__}") from error


def draft_of_node(node: BaseNode) -> ChunkDraft:
    """As a chunk of its document, whose ordinal is not known yet. Raises `QedgeError` 6154 for a node without text."""
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    if not text.strip():
        raise QedgeError(6154, f"node {node.node_id!r} has no text", remedy="leave out nodes without text")
    path = _heading_path(node.metadata.get(HEADING_PATH))
    breadcrumb = join_path(path)
    start = node.start_char_idx if isinstance(node, TextNode) else None
    end = node.end_char_idx if isinstance(node, TextNode) else None
    if start is None or end is None:
        start, end = 0, len(text)
    return ChunkDraft(
        0,
        text,
        embed_text(breadcrumb, text),
        path,
        breadcrumb,
        start,
        end,
        _whole(node.metadata.get("token_count"), 0),
        _KINDS.get(str(node.metadata.get("block_kind")), "paragraph"),
        _page(node.metadata),
    )


def draft_of_row(chunk: StoredChunk) -> ChunkDraft:
    return ChunkDraft(
        chunk.ordinal,
        chunk.text,
        embed_text(chunk.breadcrumb, chunk.text),
        chunk.heading_path,
        chunk.breadcrumb,
        chunk.char_start,
        chunk.char_end,
        chunk.token_count,
        _KINDS.get(chunk.block_kind, "paragraph"),
        chunk.page,
    )


def plain_values(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as LlamaIndex's own stores take it: what is neither text nor a number becomes text."""
    return {str(name): _plain(value) for name, value in metadata.items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    return str(value) if isinstance(value, date) else json.dumps(value, ensure_ascii=False, default=str)


def _heading_path(value: Any) -> tuple[str, ...]:
    headings: Iterable[Any] = value.split(SEPARATOR) if isinstance(value, str) else value or ()
    return tuple(clean for heading in headings if (clean := sanitize_heading(str(heading))))


def _page(metadata: Mapping[str, Any]) -> int:
    """LlamaIndex's readers call it `page_label`, and write it as text."""
    value = metadata.get("page", metadata.get("page_label"))
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    return _whole(value, UNKNOWN_PAGE)


def _whole(value: Any, otherwise: int) -> int:
    return value if type(value) is int and 0 <= value < 1 << 63 else otherwise
