"""LlamaIndex's own pipeline, index and retrieval over our parts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.schema import Document
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import (
    FilterOperator,
)

from qedge_dagster import Collection, Filter, FolderSource, OnnxEmbedder
from qedge_dagster import IngestionPipeline as Pipeline
from qedge_dagster.bridges.llamaindex import (
    QedgeEmbedding,
    QedgeNodeParser,
    QedgeReader,
    QedgeRetriever,
    QedgeVectorStore,
)
from qedge_dagster.errors import QedgeError
from tests.bridges.llamaindex.support import where
from tests.packaging.conftest import ROOT
from tests.pipeline.support import CountingEmbedder, check_integrity, contents, write


def test_their_pipeline_over_ours(tmp_path: Path, path: Path) -> None:
    """LlamaIndex's `IngestionPipeline` of our reader, node parser and vector store: what is retrieved is what was
    written, its document store upserts, and the rows are those of our own pipeline but for where they are from."""
    embedder = CountingEmbedder()
    samples = FolderSource(ROOT / "examples" / "docs", source_id="samples")
    store = QedgeVectorStore(path, QedgeEmbedding(embedder))
    theirs = IngestionPipeline(
        transformations=[QedgeNodeParser(embedder), QedgeEmbedding(embedder)],
        vector_store=store,
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.UPSERTS,
    )
    documents = QedgeReader(samples).load_data()
    nodes = theirs.run(documents=documents)
    assert theirs.run(documents=documents) == []
    index = VectorStoreIndex.from_vector_store(store, embed_model=QedgeEmbedding(embedder))
    for wanted in nodes[::9]:
        (best,) = index.as_retriever(similarity_top_k=1).retrieve(wanted.get_content("embed"))  # type: ignore[arg-type]
        assert best.node.get_content() == wanted.get_content()
        assert best.node.metadata == wanted.metadata
    with Pipeline.open(tmp_path / "ours.db", embedder=embedder) as pipeline:
        pipeline.run(samples)
    rows, ours = contents(path)[0], contents(tmp_path / "ours.db")[0]
    text_columns = slice(2, 12)  # document_id to block_kind
    assert sorted(row[text_columns] for row in rows) == sorted(row[text_columns] for row in ours)
    assert {(row[6], row[14]) for row in rows} == {(row[6], row[14]) for row in ours}  # content hash and vector
    check_integrity(path)

    changed = Document(id_=documents[0].id_, text="# Changed\n\nAltogether.")
    assert len(theirs.run(documents=[changed])) == 1
    (left,) = store.get_nodes(filters=where("doc_id", FilterOperator.EQ, changed.id_))
    assert left.get_content() == changed.text


def test_their_index_over_ours(path: Path) -> None:
    """`VectorStoreIndex` inserts, deletes and retrieves through the store, also in hybrid mode."""
    embedder = CountingEmbedder()
    store = QedgeVectorStore(path, QedgeEmbedding(embedder))
    documents = [Document(id_=name, text=f"All about {name}.", metadata={"kind": name}) for name in ("boats", "carts")]
    index = VectorStoreIndex.from_documents(
        documents,
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=QedgeEmbedding(embedder),
        transformations=[QedgeNodeParser(embedder)],
    )
    hybrid = index.as_retriever(vector_store_query_mode="hybrid", similarity_top_k=2)
    assert hybrid.retrieve("carts")[0].node.ref_doc_id == "carts"
    index.insert(Document(id_="mules", text="All about mules."))
    index.delete_ref_doc("boats")
    assert sorted(each.ref_doc_id or "" for each in store.get_nodes()) == ["carts", "mules"]


def test_retriever(tmp_path: Path, path: Path) -> None:
    """Over what a pipeline ingested, with our own filters: by vector, by words and by both; the async form too."""
    embedder = CountingEmbedder()
    folder = write(tmp_path / "docs", {"a.md": "# Boats\n\nThe ferry leaves at six.\n", "b.txt": "Use two lines.\n"})
    with Pipeline.open(path, embedder=embedder) as pipeline:
        pipeline.run(FolderSource(folder, source_id="docs"))
        for mode in ("hybrid", "vector", "keyword"):
            retriever = QedgeRetriever(pipeline.collection, top=1, mode=mode)
            (found,) = retriever.retrieve("Boats\n\nThe ferry leaves at six.")
            assert found.node.ref_doc_id == "a.md"
            assert found.node.get_content("embed") == "Boats\n\nThe ferry leaves at six."  # type: ignore[arg-type]
            (hit,) = pipeline.collection.keyword_search("ferry")
            assert found.node.node_id == hit.chunk.key
        filtered = QedgeRetriever(pipeline.collection, filter=Filter.parse("document_id=b.txt"))
        assert [each.node.ref_doc_id for each in asyncio.run(filtered.aretrieve("ferry"))] == ["b.txt"]
        with pytest.raises(QedgeError, match="6005"):
            QedgeRetriever(pipeline.collection, mode="mmr")  # type: ignore[arg-type]


def test_with_the_default_model(path: Path) -> None:
    """The ONNX model, adapted: a question in other words finds its passage, and our own search agrees."""
    embedder = OnnxEmbedder.default()
    store = QedgeVectorStore(path, QedgeEmbedding(embedder))
    documents = QedgeReader(
        FolderSource(ROOT / "examples" / "docs" / "wardens", "*.md", source_id="samples")
    ).load_data()
    IngestionPipeline(transformations=[QedgeNodeParser(), QedgeEmbedding()], vector_store=store).run(
        documents=documents
    )
    index = VectorStoreIndex.from_vector_store(store, embed_model=QedgeEmbedding(embedder))
    question = "How often is the sand filter changed?"
    (best,) = index.as_retriever(similarity_top_k=1).retrieve(question)
    assert best.node.ref_doc_id == "water.md"
    with Collection.open(path, embedder=embedder) as collection:
        (hit,) = collection.search(question, top=1)
        assert (hit.chunk.text, hit.score) == (best.node.get_content(), pytest.approx(best.score))
