"""A few nodes, and questions to the store that holds them."""

from __future__ import annotations

from typing import Any

from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from qedge_dagster.bridges.llamaindex import (
    QedgeVectorStore,
)

AXES = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])


def node(node_id: str, text: str, vector: list[float] | None, document: str | None = None, **metadata: Any) -> TextNode:
    relationships = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)} if document else {}
    return TextNode(id_=node_id, text=text, embedding=vector, metadata=metadata, relationships=relationships)


NODES = [
    node("boat", "The ferry leaves at six.", AXES[0], "trips", author="Ann", year=2021, tags=["water", "time"]),
    node("cart", "A mule carries the mail.", AXES[1], "trips", author="Bob", year=2023, tags=["land"]),
    node("club", "The clubhouse opens at nine.", AXES[2], "hours", author="Ann", year=2024),
    node("lone", "Nobody knows where this is from.", [0.5, 0.5, 0.1]),
]


def query(store: QedgeVectorStore, vector: list[float] | None = AXES[0], **fields: Any) -> list[str]:
    fields.setdefault("similarity_top_k", 10)
    return store.query(VectorStoreQuery(query_embedding=vector, **fields)).ids or []


def ids(store: QedgeVectorStore, *arguments: Any, **named: Any) -> list[str]:
    return sorted(each.node_id for each in store.get_nodes(*arguments, **named))


def where(key: str, operator: FilterOperator, value: Any) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, operator=operator, value=value)])
