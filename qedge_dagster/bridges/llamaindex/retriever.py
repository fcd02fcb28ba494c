"""A collection as a retriever of LlamaIndex."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Literal

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from qedge_dagster.bridges.llamaindex.nodes import node_of_chunk
from qedge_dagster.collection import Collection, Filter, Hit
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.nodes import NodeStore
from qedge_dagster.errors import QedgeError

__all__ = ["QedgeRetriever", "scored_nodes"]

Mode = Literal["hybrid", "vector", "keyword"]


class QedgeRetriever(BaseRetriever):
    """The `top` best chunks of a collection for a query, whether a pipeline or LlamaIndex wrote them.

    The query is embedded by the collection's own embedder, or comes with an embedding of its own. Scores are those of
    `Hit`: of a hybrid search made of ranks, not of relevance.
    """

    def __init__(
        self,
        collection: Collection,
        *,
        top: int = 10,
        mode: Mode = "hybrid",
        filter: Filter | None = None,  # noqa: A002 - as in Collection.search
    ) -> None:
        if mode not in ("hybrid", "vector", "keyword"):
            raise QedgeError(6005, f"mode must be hybrid, vector or keyword, not {mode!r}")
        super().__init__()
        self._collection = collection
        self._top = top
        self._mode = mode
        self._filter = filter

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        text = query_bundle.query_str
        query = query_bundle.embedding or text
        if self._mode == "keyword":
            hits = self._collection.keyword_search(text, top=self._top, filter=self._filter)
        elif self._mode == "vector":
            hits = self._collection.search(query, top=self._top, filter=self._filter)
        else:
            hits = self._collection.hybrid_search(query, text, top=self._top, filter=self._filter)
        return scored_nodes(self._collection, hits)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def scored_nodes(collection: Collection, hits: list[Hit]) -> list[NodeWithScore]:
    """Hits as nodes: those that LlamaIndex wrote as they were."""
    with closing(Database(collection.path, read_only=True)) as database:
        held = NodeStore(database, collection.name).by_key(hit.chunk.key for hit in hits)
    return [
        NodeWithScore(
            node=node_of_chunk(hit.chunk, held[hit.chunk.key].content if hit.chunk.key in held else None),
            score=hit.score,
        )
        for hit in hits
    ]
