"""Our sources and extractors as LlamaIndex's reader, our chunkers as its node parser."""

from __future__ import annotations

import asyncio
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from llama_index.core.schema import Document, MetadataMode, NodeRelationship, TextNode

from qedge_dagster import ChunkingOptions, FolderSource, IngestionPipeline
from qedge_dagster.bridges.llamaindex import QedgeNodeParser, QedgeReader
from qedge_dagster.errors import Failure, QedgeError
from qedge_dagster.sources import ItemsSource, SourceItem, UnlistedPart
from tests.packaging.conftest import ROOT
from tests.pipeline.support import CountingEmbedder, write

SAMPLES = ROOT / "examples" / "docs"


@pytest.fixture(scope="module")
def samples() -> FolderSource:
    """The sample corpus: text, Markdown, PDF and Word."""
    return FolderSource(SAMPLES, source_id="samples")


def test_nodes_are_the_chunks_of_a_pipeline(samples: FolderSource, tmp_path: Path) -> None:
    """Reader and node parser give, document by document, what an ingestion stores: ids (the keys), texts, offsets,
    heading paths, pages, kinds and token counts; and the text for the model is the one that it embeds."""
    embedder = CountingEmbedder()
    nodes = QedgeNodeParser(embedder).get_nodes_from_documents(QedgeReader(samples).load_data())
    with IngestionPipeline.open(tmp_path / "notes.db", embedder=embedder) as pipeline:
        assert pipeline.run(samples).documents_failed == 0
        chunks = list(pipeline.collection.chunks())
    assert len(nodes) == len(chunks) > 50
    assert {node.metadata["media_type"].rpartition("/")[2][:4] for node in nodes} == {"plai", "mark", "pdf", "vnd."}
    assert any("page" in node.metadata for node in nodes)
    for node, chunk in zip(nodes, chunks, strict=True):
        assert isinstance(node, TextNode)
        assert (node.node_id, node.text, node.ref_doc_id) == (chunk.key, chunk.text, chunk.document_id)
        assert (node.start_char_idx, node.end_char_idx) == (chunk.char_start, chunk.char_end)
        assert node.metadata.get("heading_path", "") == chunk.breadcrumb
        assert node.metadata.get("page", -1) == chunk.page
        assert node.metadata["block_kind"] == chunk.block_kind
        assert node.metadata["token_count"] == chunk.token_count
        assert node.metadata["extractor_id"] == chunk.extractor_id
    assert {node.get_content(MetadataMode.EMBED) for node in nodes} == set(embedder.texts)


def test_neighbours_and_document(samples: FolderSource) -> None:
    """Nodes of one document are linked to it and to one another, and never across documents; blocks are not copied."""
    documents = QedgeReader(samples).load_data()
    nodes = QedgeNodeParser(CountingEmbedder()).get_nodes_from_documents(documents)
    by_id = {node.node_id: node for node in nodes}
    for before, after in pairwise(nodes):
        same = before.ref_doc_id == after.ref_doc_id
        assert (before.next_node is not None and before.next_node.node_id == after.node_id) == same
        assert (after.prev_node is not None and after.prev_node.node_id == before.node_id) == same
    assert {node.ref_doc_id for node in by_id.values()} == {document.id_ for document in documents}
    assert "qedge_blocks" not in str([node.to_dict() for node in nodes])
    bare = QedgeNodeParser(CountingEmbedder(), include_prev_next_rel=False, include_metadata=False)
    for node in bare.get_nodes_from_documents(documents):
        assert set(node.relationships) == {NodeRelationship.SOURCE}
        assert "media_type" not in node.metadata


def test_documents_of_other_readers() -> None:
    """A text that some other reader made is read as Markdown by its type or name, else as plain text; offsets are those
    of the text as it was given, with its CRLF, its BOM and its front matter."""
    section = "# Boats\r\n\r\n" + "The ferry leaves at six. " * 12 + "\r\n\r\n"
    text = "\ufeff---\r\ntitle: Boats\r\n---\r\n" + section * 2
    parser = QedgeNodeParser(CountingEmbedder())
    markdown = parser.get_nodes_from_documents([Document(text=text, metadata={"file_path": "/a/boats.md"})])
    plain = parser.get_nodes_from_documents([Document(text=text)])
    assert [node.metadata["heading_path"] for node in markdown] == ["Boats", "Boats"]
    assert all("heading_path" not in node.metadata for node in plain)
    for node in (*markdown, *plain):
        assert isinstance(node, TextNode)
        assert text[node.start_char_idx : node.end_char_idx] == node.text
    assert len({node.node_id for node in markdown}) == 2
    first, second = markdown
    assert isinstance(first, TextNode)
    assert isinstance(second, TextNode)
    assert second.start_char_idx == text.rindex("# Boats") + len("# Boats\r\n\r\n")


def test_budget_and_options() -> None:
    """Chunks keep to the budget, options reach the chunker, and change what a cache of transformations goes by."""
    embedder = CountingEmbedder()
    text = "The ferry leaves at six from the stone quay. " * 40
    small = QedgeNodeParser(embedder, ChunkingOptions(max_tokens=40, overlap=8, min_tokens=16))
    pieces = small.split_text(text)
    assert len(pieces) > 10
    assert max(embedder.tokenizer.count_batch(pieces)) <= 40
    assert [node.get_content() for node in small.get_nodes_from_documents([Document(text=text)])] == pieces
    assert small.to_dict()["recipe"] != QedgeNodeParser(embedder).to_dict()["recipe"]
    named = QedgeNodeParser(embedder, id_func=lambda index, document: f"{document.node_id}/{index}")
    assert [node.node_id for node in named.get_nodes_from_documents([Document(id_="d", text="One.")])] == ["d/0"]
    assert asyncio.run(named.aget_nodes_from_documents([Document(id_="d", text="One.")]))[0].node_id == "d/0"
    with pytest.raises(QedgeError, match="6003"):
        QedgeNodeParser(embedder, ChunkingOptions(max_tokens=4000))


def test_reading_is_lazy(samples: FolderSource) -> None:
    """A document is read when it is asked for; the async forms give the same."""
    opened: list[str] = []

    def items() -> list[SourceItem]:
        found = [item for item in samples.items() if isinstance(item, SourceItem)]
        for item in found:
            item.open = lambda item=item, real=item.open: (opened.append(item.document_id), real())[1]
        return found

    reader = QedgeReader(ItemsSource(items, "samples"))
    first = next(iter(reader.lazy_load_data()))
    assert set(opened) == {first.id_}
    assert [d.id_ for d in asyncio.run(reader.aload_data())] == [d.id_ for d in QedgeReader(samples).load_data()]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    """The first document, or part of the source, that cannot be read is raised; with `on_failure` it is reported, and
    the rest is read."""
    write(tmp_path, {"a.md": "# A\n", "b.pdf": b"%PDF-1.4 no", "c.bin": b"\x00", "d.txt": "D\n"})

    def listing() -> list[SourceItem | UnlistedPart]:
        return [*FolderSource(tmp_path).items(), UnlistedPart("attic/", "Permission denied")]

    source = ItemsSource(listing, "mixed")
    with pytest.raises(QedgeError, match="6104"):
        QedgeReader(source).load_data()
    failures: list[tuple[str, int]] = []

    def note(name: str, failure: Failure) -> None:
        failures.append((name, failure.code))

    assert [document.id_ for document in QedgeReader(source, on_failure=note).load_data()] == ["a.md", "d.txt"]
    assert failures == [("b.pdf", 6104), ("c.bin", 6101), ("attic/", 6051)]
    shutil.rmtree(tmp_path)
    with pytest.raises(QedgeError, match="6051"):
        QedgeReader(FolderSource(tmp_path), on_failure=note).load_data()
