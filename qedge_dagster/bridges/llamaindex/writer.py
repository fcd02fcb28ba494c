"""Nodes of LlamaIndex into the rows of a collection: the schema, the keys and the transactions of an ingestion."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import apsw
import numpy as np
from llama_index.core.schema import BaseNode

from qedge_dagster.bridges.llamaindex.nodes import content_of_node, document_id_of, draft_of_node, draft_of_row
from qedge_dagster.chunking.base import ChunkDraft
from qedge_dagster.collection.chunk import VECTORS_OF_OTHERS
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.faults import database_error
from qedge_dagster.collection.nodes import NodeStore, StoredNode
from qedge_dagster.collection.schema import CollectionSpec, create, read_spec
from qedge_dagster.collection.stored import stored_chunks
from qedge_dagster.collection.writer import CollectionWriter
from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.embedding.vectors import unit_length
from qedge_dagster.errors import QedgeError
from qedge_dagster.pipeline.diff import diff_chunks, identify
from qedge_dagster.pipeline.lock import run_lock
from qedge_dagster.pipeline.options import IngestionOptions
from qedge_dagster.pipeline.work import utc_now
from qedge_dagster.sources.base import check_id
from qedge_dagster.state import DocumentRow, ModelRecord, StateStore

__all__ = ["NodeWriter"]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A node of a document; `vector` is None where its row has one."""

    node_id: str
    draft: ChunkDraft
    content: str
    media_type: str
    vector: bytes | None = None


class NodeWriter:
    """Writes under one source id, which no ingested source may have. Each call has a connection of its own and may come
    from any thread; two writers of the same source take turns."""

    def __init__(
        self,
        path: Path,
        collection: str,
        source_id: str,
        model: ModelRecord,
        options: IngestionOptions,
        lock_wait: float,
    ) -> None:
        CollectionSpec(collection)  # refuses a name that must not reach SQL
        self._path = path
        self._name = collection
        self._source_id = check_id(source_id, "source id")
        self._model = model
        self._options = options
        self._lock_wait = lock_wait
        self._looked_over = False

    def add(self, nodes: Sequence[BaseNode]) -> None:
        """Add nodes, or replace those of the same ids: all of them or none, in one transaction.

        Raises `QedgeError` 6206 for a vector that is missing, zero or not finite, 6006 for one of another dimension,
        6154 for a node without text, 6055 for an unusable id, 6012 where the collection was built with another model,
        6008 while another writer has the source, 6205 where the file cannot be written.
        """
        if not nodes:
            return
        documents: dict[str, dict[str, _Entry]] = {}
        vectors = _vectors(nodes, self._options.distance)
        for node, vector in zip(nodes, vectors, strict=True):
            check_id(node.node_id, "node id")
            entry = _Entry(
                node.node_id,
                draft_of_node(node),
                content_of_node(node),
                str(node.metadata.get("media_type") or "text/plain"),
                vector,
            )
            documents.setdefault(check_id(document_id_of(node), "document id"), {})[node.node_id] = entry
        with self._writing(len(vectors[0]) // 4) as database:
            store = NodeStore(database, self._name)
            known = store.by_id(self._source_id, (node.node_id for node in nodes))
            touched = sorted({*documents, *(node.document_id for node in known.values())})
            before = {document_id: self._entries(database, document_id) for document_id in touched}
            store.delete(self._source_id, known)
            for document_id in touched:
                new = documents.get(document_id, {})
                # One that is not among the new ones is a node of another document now.
                kept = {id_: e for id_, e in before[document_id].items() if id_ in new or id_ not in known}
                self._switch(database, document_id, [*{**kept, **new}.values()])

    def delete_document(self, document_id: str) -> None:
        """Delete the nodes of a document that were written here."""
        with self._writing() as database:
            self._switch(database, document_id, [])

    def delete_nodes(self, node_ids: Iterable[str]) -> None:
        """Delete nodes that were written here; other ids are left alone."""
        with self._writing() as database:
            gone = NodeStore(database, self._name).by_id(self._source_id, node_ids)
            for document_id in sorted({node.document_id for node in gone.values()}):
                entries = self._entries(database, document_id)
                self._switch(database, document_id, [e for e in entries.values() if e.node_id not in gone])

    def clear(self) -> None:
        """Delete everything that was written here."""
        with self._writing() as database:
            for _, row in list(StateStore(database, self._name).documents(self._source_id)):
                self._switch(database, row.document_id, [])

    @contextmanager
    def _writing(self, dimensions: int | None = None) -> Generator[Database, None, None]:
        """The run lock and a write transaction in it; where vectors of `dimensions` come, over a collection that has
        them. Without, the collection is there."""
        with closing(Database(self._path, synchronous=self._options.synchronous)) as database:
            state = StateStore(database, self._name)
            try:
                if dimensions is not None:
                    self._prepare(database, dimensions)
                with run_lock(self._path, state, self._source_id, wait_seconds=self._lock_wait), database.atomic():
                    self._check_model(state)
                    nodes = NodeStore(database, self._name)
                    nodes.create()
                    if not self._looked_over:
                        self._check_source(state)
                        nodes.drop_lost()
                    yield database
                self._looked_over = True
            except apsw.Error as error:
                raise database_error(error, self._path) from error

    def _prepare(self, database: Database, dimensions: int) -> None:
        found = read_spec(database, self._name)
        options = self._options
        made = CollectionSpec(self._name, dimensions, options.distance, options.fts_tokenizer, options.first_migration)
        create(database, made if found is None else replace(found, dimensions=dimensions))

    def _check_model(self, state: StateStore) -> None:
        model = state.model()
        if model is None:
            state.put_model(self._model)
        elif model.identity != self._model.identity:
            raise QedgeError(
                6012,
                f"collection {self._name} was built with {model.profile_id!r}, these vectors are of"
                f" {self._model.profile_id!r}",
                remedy="use the model that the collection was built with, or another collection",
            )

    def _check_source(self, state: StateStore) -> None:
        if any(row.extractor_id != VECTORS_OF_OTHERS for _, row in state.documents(self._source_id)):
            raise QedgeError(
                6005,
                f"{self._source_id!r} is the source id of ingested documents",
                remedy="give the vector store a source_id of its own",
            )

    def _entries(self, database: Database, document_id: str) -> dict[str, _Entry]:
        """The nodes that a document has now, in their order."""
        nodes = {node.key: node for node in NodeStore(database, self._name).of_document(self._source_id, document_id)}
        entries: dict[str, _Entry] = {}
        for chunk in stored_chunks(database, self._name, self._source_id, document_id):
            node = nodes[chunk.key]
            entries[node.node_id] = _Entry(node.node_id, draft_of_row(chunk), node.content, chunk.media_type)
        return entries

    def _switch(self, database: Database, document_id: str, entries: Sequence[_Entry]) -> None:
        """Make `entries` the nodes of the document."""
        writer, state = CollectionWriter(database, self._name), StateStore(database, self._name)
        drafts = [replace(entry.draft, ordinal=ordinal) for ordinal, entry in enumerate(entries)]
        document = ExtractedDocument(document_id, VECTORS_OF_OTHERS, 0, "", "", ())
        rows = [
            replace(row, media_type=entry.media_type)
            for row, entry in zip(identify(self._source_id, document, drafts), entries, strict=True)
        ]
        fresh = {row.content_hash: e.vector for row, e in zip(rows, entries, strict=True) if e.vector is not None}
        stored = list(writer.stored(self._source_id, document_id))
        # A row whose text stays may have a new vector.
        renewed = {row.key for row, entry in zip(rows, entries, strict=True) if entry.vector is not None}
        writer.delete(row.rowid for row in stored if row.key in renewed)
        diff = diff_chunks((row for row in stored if row.key not in renewed), rows)
        writer.add(self._source_id, document_id, diff.added, fresh, utc_now())
        writer.delete(diff.removed)
        writer.repair(diff.repaired)
        if entries:
            state.put_document(self._source_id, _state_row(document_id, len(entries)))
        else:
            state.delete_document(self._source_id, document_id)
        NodeStore(database, self._name).put(
            self._source_id,
            document_id,
            [StoredNode(e.node_id, document_id, row.key, e.content) for row, e in zip(rows, entries, strict=True)],
        )


def _state_row(document_id: str, count: int) -> DocumentRow:
    """Without hashes: there was no file to hash, and nothing can be skipped."""
    return DocumentRow(
        document_id,
        content_hash=None,
        recipe_hash=None,
        size_bytes=None,
        modified_utc=None,
        extractor_id=VECTORS_OF_OTHERS,
        chunk_count=count,
        status="indexed",
        error=None,
        last_run_id="",
        updated_utc=utc_now(),
    )


def _vectors(nodes: Sequence[BaseNode], distance: str) -> list[bytes]:
    """float32, of unit length where only the direction counts."""
    missing = [node.node_id for node in nodes if node.embedding is None]
    if missing:
        raise QedgeError(6206, f"node {missing[0]!r} has no embedding", remedy="embed the nodes before they are added")
    lengths = {len(node.get_embedding()) for node in nodes}
    if len(lengths) > 1:
        raise QedgeError(6006, f"the embeddings have {min(lengths)} to {max(lengths)} dimensions")
    given = np.asarray([node.get_embedding() for node in nodes], dtype=np.float64)
    with np.errstate(over="ignore"):
        vectors = unit_length(given) if distance == "cosine" else given.astype("<f4")
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1) | ~vectors.any(axis=1))
    if len(bad):
        raise QedgeError(
            6206,
            f"{len(bad)} of {len(nodes)} embeddings are zero or not finite, first that of {nodes[bad[0]].node_id!r}",
        )
    return [vector.tobytes() for vector in np.ascontiguousarray(vectors, dtype="<f4")]
