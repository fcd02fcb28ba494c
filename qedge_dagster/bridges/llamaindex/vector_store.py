"""A collection as a vector store of LlamaIndex."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)

from qedge_dagster.bridges.llamaindex.embedding import QedgeEmbedding
from qedge_dagster.bridges.llamaindex.filters import matcher, split_filters
from qedge_dagster.bridges.llamaindex.nodes import node_of_chunk
from qedge_dagster.bridges.llamaindex.retriever import scored_nodes
from qedge_dagster.bridges.llamaindex.writer import NodeWriter
from qedge_dagster.collection import Collection, Filter, Hit, StoredChunk
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.filters import All, Equal, In
from qedge_dagster.collection.nodes import NodeStore
from qedge_dagster.collection.schema import read_spec
from qedge_dagster.collection.stored import filtered_chunks
from qedge_dagster.embedding.base import model_identity
from qedge_dagster.errors import QedgeError
from qedge_dagster.hashing import hash_fields
from qedge_dagster.pipeline.options import IngestionOptions
from qedge_dagster.state import ModelRecord, StateStore

__all__ = ["QedgeVectorStore"]


class QedgeVectorStore(BasePydanticVectorStore):
    """Nodes in the file and the schema of an ingested collection: `Collection.search` and the command line find them.

    What is read is the whole collection: nodes that LlamaIndex wrote, and what a pipeline ingested, whose node ids are
    the chunks' keys. What is written, replaced and deleted is this store's own alone, under `source_id`; no run of a
    pipeline touches that. Document by document there is no incremental re-index on this path: a node says nothing of
    the file that it came from. `ReaderSource` has it.
    """

    stores_text: bool = True
    path: str
    collection: str
    source_id: str
    _model: ModelRecord = PrivateAttr()
    _writer: NodeWriter = PrivateAttr()

    def __init__(
        self,
        path: Path | str,
        model: BaseEmbedding | str,
        *,
        collection: str = "chunks",
        source_id: str = "llamaindex",
        options: IngestionOptions | None = None,
        lock_wait: float = 60.0,
    ) -> None:
        """`model` is what the vectors are made with, or its name: a collection holds vectors of one model alone. For a
        collection that a pipeline fills it is `QedgeEmbedding` with the pipeline's embedder. `options` say how a new
        collection is made. `lock_wait` is how many seconds a writer waits for another one of the same source.

        The file is made by the first writing. Raises `QedgeError` 6005 or 6055 for a name that cannot be.
        """
        super().__init__(path=str(path), collection=collection, source_id=source_id)  # type: ignore[call-arg]
        self._model = _record(model)
        self._writer = NodeWriter(
            Path(path), collection, source_id, self._model, options or IngestionOptions(), lock_wait
        )

    @classmethod
    def class_name(cls) -> str:
        return "QedgeVectorStore"

    @property
    def client(self) -> Collection:
        """The reading side, newly opened. Raises `QedgeError` 6002 where nothing was written yet."""
        return Collection.open(self.path, self.collection)

    # writing

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes, or replace those of the same ids; all of them or none. Raises what `NodeWriter.add` raises."""
        self._writer.add(nodes)
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document, as far as this store wrote them."""
        if self._exists():
            self._writer.delete_document(ref_doc_id)

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes by id, by filters or, with both, those that have one of the ids and pass. Without either, none.
        Only what this store wrote is deleted."""
        if not self._exists() or (node_ids is None and filters is None):
            return
        if filters is not None:
            node_ids = [node.node_id for node in self._select(node_ids, filters, Equal("source_id", self.source_id))]
        self._writer.delete_nodes(node_ids or [])

    def clear(self) -> None:
        """Delete everything that this store wrote."""
        if self._exists():
            self._writer.clear()

    # reading

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """In the order of source, document and place; without arguments, all of the collection."""
        return list(self._select(node_ids, filters, All(()))) if self._exists() else []

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Modes: `default` by vector, `sparse` and `text_search` by the words of the query, `hybrid` by both, where
        `alpha` is the weight of the vector. Filters are applied before the search.

        Raises `QedgeError` 6005 for another mode or a query that lacks what its mode needs, 6012 where the collection
        was built with another model, 6006 for a vector of another dimension.
        """
        if not self._exists():
            return VectorStoreQueryResult(nodes=[], similarities=[], ids=[])
        with closing(self.client) as collection:
            found = scored_nodes(collection, self._hits(collection, query))
        return VectorStoreQueryResult(
            nodes=[each.node for each in found],
            similarities=[each.score or 0.0 for each in found],
            ids=[each.node.node_id for each in found],
        )

    def _hits(self, collection: Collection, query: VectorStoreQuery) -> list[Hit]:
        mode = query.mode
        by_words = mode in (VectorStoreQueryMode.TEXT_SEARCH, VectorStoreQueryMode.SPARSE)
        if not by_words and mode not in (VectorStoreQueryMode.DEFAULT, VectorStoreQueryMode.HYBRID):
            raise QedgeError(6005, f"no query mode {mode.value}", remedy="use default, sparse, text_search or hybrid")
        if mode != VectorStoreQueryMode.DEFAULT and query.query_str is None:
            raise QedgeError(6005, f"mode {mode.value} needs query_str")
        if not by_words and query.query_embedding is None:
            raise QedgeError(6005, f"mode {mode.value} needs query_embedding")
        filter_ = self._filter(query)
        if by_words:
            top = query.sparse_top_k or query.similarity_top_k
            return collection.keyword_search(query.query_str or "", top=top, filter=filter_)
        vector = query.query_embedding or []
        if mode == VectorStoreQueryMode.DEFAULT:
            return collection.search(vector, top=query.similarity_top_k, filter=filter_)
        weights = (1.0, 1.0) if query.alpha is None else (query.alpha, 1.0 - query.alpha)
        top = query.hybrid_top_k or query.similarity_top_k
        return collection.hybrid_search(vector, query.query_str, top=top, filter=filter_, weights=weights)

    def _filter(self, query: VectorStoreQuery) -> Filter:
        filter_, left = split_filters(query.filters)
        if query.doc_ids:
            filter_ = filter_ & In("document_id", query.doc_ids)
        with closing(Database(self.path, read_only=True)) as database:
            model = StateStore(database, self.collection).model()
            if model is not None and model.identity != self._model.identity:
                raise QedgeError(
                    6012,
                    f"collection {self.collection} was built with {model.profile_id!r}, this vector store is for"
                    f" {self._model.profile_id!r}",
                )
            if query.node_ids:  # `VectorStoreIndex` gives an empty list where it means all
                filter_ = filter_ & self._of_ids(NodeStore(database, self.collection), query.node_ids)
        if left is None:
            return filter_
        passes = matcher(left)
        return filter_ & In("key", [c.key for c, node in self._nodes(filter_) if passes(node.metadata)])

    def _of_ids(self, store: NodeStore, node_ids: Sequence[str]) -> Filter:
        """An ingested chunk's key is its node's id."""
        written = store.by_id(self.source_id, node_ids)
        return In("key", [written[id_].key if id_ in written else id_ for id_ in node_ids])

    def _select(
        self, node_ids: list[str] | None, filters: MetadataFilters | None, within: Filter
    ) -> Iterator[BaseNode]:
        said, left = split_filters(filters)
        filter_ = said & within
        if node_ids is not None:
            with closing(Database(self.path, read_only=True)) as database:
                filter_ = filter_ & self._of_ids(NodeStore(database, self.collection), node_ids)
        passes = matcher(left) if left is not None else _everything
        return (node for _, node in self._nodes(filter_) if passes(node.metadata))

    def _nodes(self, filter_: Filter) -> Iterator[tuple[StoredChunk, BaseNode]]:
        with closing(Database(self.path, read_only=True)) as database, database.snapshot():
            store = NodeStore(database, self.collection)
            chunks = list(filtered_chunks(database, self.collection, filter_))
            written = store.by_key(chunk.key for chunk in chunks)
        for chunk in chunks:
            node = written.get(chunk.key)
            yield chunk, node_of_chunk(chunk, node.content if node is not None else None)

    def _exists(self) -> bool:
        if not Path(self.path).is_file():
            return False
        with closing(Database(self.path, read_only=True)) as database:
            return read_spec(database, self.collection) is not None

    # the same, not in the way of an event loop

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        return await asyncio.to_thread(self.add, nodes, **kwargs)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        await asyncio.to_thread(self.delete, ref_doc_id, **delete_kwargs)

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        await asyncio.to_thread(self.delete_nodes, node_ids, filters, **delete_kwargs)

    async def aclear(self) -> None:
        await asyncio.to_thread(self.clear)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        return await asyncio.to_thread(self.query, query, **kwargs)


def _everything(_: Mapping[str, Any]) -> bool:
    return True


def _record(model: BaseEmbedding | str) -> ModelRecord:
    if isinstance(model, QedgeEmbedding):
        return ModelRecord(model_identity(model.embedder), model.embedder.profile.id)
    name = model if isinstance(model, str) else model.model_name
    if not name or name == "unknown":
        raise QedgeError(6005, "the embedding model has no name", remedy="give its name as `model`")
    return ModelRecord(hash_fields(("llamaindex", name)).hex(), name)
