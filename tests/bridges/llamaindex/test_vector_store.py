"""Our collection as LlamaIndex's vector store: writing, reading, filters, and that a pipeline's rows are left alone."""

from __future__ import annotations

import asyncio
import json
import math
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

import pytest
from click.testing import CliRunner
from llama_index.core.schema import IndexNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from qedge_dagster import Collection, Filter, FolderSource
from qedge_dagster import IngestionPipeline as Pipeline
from qedge_dagster.bridges.llamaindex import (
    QedgeEmbedding,
    QedgeVectorStore,
)
from qedge_dagster.cli import main
from qedge_dagster.errors import QedgeError
from qedge_dagster.pipeline.doctor import examine
from qedge_dagster.pipeline.lock import run_lock
from qedge_dagster.state import StateStore
from tests.bridges.llamaindex.support import AXES, NODES, ids, node, query, where
from tests.pipeline.support import CountingEmbedder, check_integrity, contents, write


def test_nodes_come_back_as_they_were(path: Path) -> None:
    """Ids, text, offsets, heading path, page, metadata, relationships and the kind of node; not the vector."""
    given = TextNode(
        id_="full",
        text="Use two lines. ",
        embedding=AXES[0],
        metadata={"heading_path": "Boats \u203a Mooring", "page": 3, "nested": {"a": [1, None]}, "when": "2024-05-01"},
        start_char_idx=40,
        end_char_idx=55,
        excluded_llm_metadata_keys=["nested"],
        metadata_template="{value}",
        relationships={
            NodeRelationship.SOURCE: RelatedNodeInfo(node_id="doc", metadata={"x": 1}, hash="h"),
            NodeRelationship.NEXT: RelatedNodeInfo(node_id="other"),
        },
    )
    link = IndexNode(id_="link", text="See there.", index_id="elsewhere", embedding=AXES[1])
    store = QedgeVectorStore(path, "axes")
    store.add([given, link])
    full, back = store.get_nodes(["full"])[0], store.get_nodes(["link"])[0]
    assert full.to_dict() == {**given.to_dict(), "embedding": None}
    assert isinstance(back, IndexNode)
    assert back.index_id == "elsewhere"
    with Collection.open(path) as collection:
        (chunk,) = collection.chunks("doc")
    assert (chunk.text, chunk.heading_path, chunk.page) == ("Use two lines. ", ("Boats", "Mooring"), 3)
    assert (chunk.char_start, chunk.char_end) == (40, 55)
    assert chunk.source_id == "llamaindex"


@pytest.mark.usefixtures("store")
def test_the_file_is_sound(path: Path) -> None:
    """What `doctor` asks of an ingested collection holds, and both of its searches find the nodes."""
    check_integrity(path)
    assert examine(path, "chunks").healthy
    with Collection.open(path) as collection:
        assert [hit.chunk.document_id for hit in collection.search(AXES[2], top=1)] == ["hours"]
        assert [hit.chunk.document_id for hit in collection.keyword_search("mule")] == ["trips"]
        (one,) = collection.search(AXES[0], filter=Filter.parse("document_id=hours"))
        assert one.chunk.text == "The clubhouse opens at nine."


def test_query_modes(store: QedgeVectorStore) -> None:
    """By vector, by words, by both with the weight of the vector; other modes and missing parts are refused."""
    assert query(store)[:1] == ["boat"]
    assert query(store, similarity_top_k=2) == ["boat", "lone"]
    result = store.query(VectorStoreQuery(query_embedding=AXES[0], similarity_top_k=1))
    assert result.similarities == pytest.approx([1.0])
    for mode in (VectorStoreQueryMode.TEXT_SEARCH, VectorStoreQueryMode.SPARSE):
        assert query(store, None, mode=mode, query_str="clubhouse") == ["club"]
    hybrid = {"mode": VectorStoreQueryMode.HYBRID, "query_str": "clubhouse opens"}
    assert set(query(store, **hybrid)[:2]) == {"boat", "club"}
    assert query(store, **hybrid, alpha=1.0)[0] == "boat"
    assert query(store, **hybrid, alpha=0.0) == ["club"]
    assert len(query(store, **hybrid, hybrid_top_k=1)) == 1
    for fields in (
        {"mode": VectorStoreQueryMode.MMR},
        {"mode": VectorStoreQueryMode.HYBRID},
        {"mode": VectorStoreQueryMode.TEXT_SEARCH},
    ):
        with pytest.raises(QedgeError, match="6005"):
            query(store, **fields)
    with pytest.raises(QedgeError, match="6005"):
        query(store, None)


FILTERS: list[tuple[MetadataFilters, list[str]]] = [
    (where("author", FilterOperator.EQ, "Ann"), ["boat", "club"]),
    (where("author", FilterOperator.NE, "Ann"), ["cart", "lone"]),
    (where("year", FilterOperator.GT, 2021), ["cart", "club"]),
    (where("year", FilterOperator.LTE, 2023), ["boat", "cart"]),
    (where("author", FilterOperator.IN, ["Bob", "Eve"]), ["cart"]),
    (where("author", FilterOperator.NIN, ["Bob"]), ["boat", "club", "lone"]),
    (where("tags", FilterOperator.CONTAINS, "water"), ["boat"]),
    (where("tags", FilterOperator.ANY, ["land", "time"]), ["boat", "cart"]),
    (where("tags", FilterOperator.ALL, ["water", "time"]), ["boat"]),
    (where("author", FilterOperator.TEXT_MATCH_INSENSITIVE, "an"), ["boat", "club"]),
    (where("author", FilterOperator.IS_EMPTY, None), ["lone"]),
    (where("year", FilterOperator.GT, "no number"), []),
    (where("ref_doc_id", FilterOperator.EQ, "trips"), ["boat", "cart"]),
    (where("document_id", FilterOperator.IN, ["hours", "lone"]), ["club", "lone"]),
]


@pytest.mark.parametrize(("filters", "expected"), FILTERS, ids=lambda value: str(value)[:60])
def test_filters(store: QedgeVectorStore, filters: MetadataFilters, expected: list[str]) -> None:
    """Each operator means what it means to LlamaIndex, in queries, in `get_nodes` and in `delete_nodes`, and costs no
    hits: the best of those that pass comes, however far it is."""
    assert sorted(query(store, filters=filters)) == expected
    assert ids(store, filters=filters) == expected
    if expected:
        assert query(store, filters=filters, similarity_top_k=1)[0] in expected
    store.delete_nodes(filters=filters)
    assert ids(store) == sorted({"boat", "cart", "club", "lone"} - set(expected))


@pytest.mark.parametrize(("filters", "expected"), FILTERS[:9], ids=lambda value: str(value)[:60])
def test_filters_as_in_their_own_store(filters: MetadataFilters, expected: list[str]) -> None:
    """LlamaIndex's in-memory store gives the same nodes for the same filters."""
    theirs = SimpleVectorStore()
    theirs.add(NODES)
    result = theirs.query(VectorStoreQuery(query_embedding=AXES[0], similarity_top_k=10, filters=filters))
    assert sorted(result.ids or []) == expected


def test_filters_together(store: QedgeVectorStore) -> None:
    """AND, OR, NOT, filters within filters, and the ids of documents and nodes."""
    ann, late = MetadataFilter(key="author", value="Ann"), MetadataFilter(key="year", value=2022, operator=">")
    by = {condition: MetadataFilters(filters=[ann, late], condition=condition) for condition in FilterCondition}
    assert ids(store, filters=by[FilterCondition.AND]) == ["club"]
    assert ids(store, filters=by[FilterCondition.OR]) == ["boat", "cart", "club"]
    assert ids(store, filters=by[FilterCondition.NOT]) == ["lone"]
    nested = MetadataFilters(filters=[by[FilterCondition.OR], MetadataFilter(key="doc_id", value="trips")])
    assert ids(store, filters=nested) == ["boat", "cart"]
    assert sorted(query(store, filters=nested, node_ids=["cart", "club"])) == ["cart"]
    assert sorted(query(store, doc_ids=["hours"])) == ["club"]
    assert ids(store, ["boat", "nobody"], filters=where("author", FilterOperator.EQ, "Ann")) == ["boat"]
    assert ids(store, filters=MetadataFilters(filters=[])) == ["boat", "cart", "club", "lone"]


def test_deleting(store: QedgeVectorStore, path: Path) -> None:
    """By document, by node, and all; what is not there is no error, and the file stays sound."""
    store.delete("trips")
    store.delete("unknown")
    assert ids(store) == ["club", "lone"]
    store.delete_nodes(["lone", "unknown"])
    store.delete_nodes()
    assert ids(store) == ["club"]
    check_integrity(path)
    store.clear()
    assert ids(store) == []
    assert query(store) == []
    check_integrity(path)
    assert examine(path, "chunks").healthy


def test_equal_texts_in_one_document(store: QedgeVectorStore, path: Path) -> None:
    """They are nodes of their own, also when one of them goes or gets another text."""
    store.add([node(f"twin-{n}", "Twice.", AXES[n], "twins", n=n) for n in range(3)])
    check_integrity(path)
    store.delete_nodes(["twin-0"])
    assert [each.metadata for each in store.get_nodes(filters=where("doc_id", FilterOperator.EQ, "twins"))] == [
        {"n": 1},
        {"n": 2},
    ]
    store.add([node("twin-1", "Once.", AXES[0], "twins", n=1)])
    assert {each.node_id: each.get_content() for each in store.get_nodes(["twin-1", "twin-2"])} == {
        "twin-1": "Once.",
        "twin-2": "Twice.",
    }
    check_integrity(path)
    assert examine(path, "chunks").healthy


def test_adding_again(store: QedgeVectorStore, path: Path) -> None:
    """A node of a known id is replaced: its text, its vector alone, its metadata, or its document."""
    store.add([node("boat", "The ferry leaves at six.", AXES[2], "trips", author="Eve")])
    assert query(store, AXES[2], similarity_top_k=2, doc_ids=["trips"])[0] == "boat"
    assert ids(store, filters=where("author", FilterOperator.EQ, "Eve")) == ["boat"]
    store.add([node("boat", "The ferry leaves at six.", AXES[0], "hours")])
    assert ids(store, filters=where("doc_id", FilterOperator.EQ, "hours")) == ["boat", "club"]
    assert ids(store, filters=where("doc_id", FilterOperator.EQ, "trips")) == ["cart"]
    check_integrity(path)


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (node("x", "x", [math.nan, 0.0, 0.0]), 6206),
        (node("x", "x", [math.inf, 0.0, 0.0]), 6206),
        (node("x", "x", [0.0, 0.0, 0.0]), 6206),
        (node("x", "x", None), 6206),
        (node("x", "x", [1.0, 0.0]), 6006),
        (node("x", " ", AXES[0]), 6154),
        (node("x\n", "x", AXES[0]), 6055),
        (node("x", "x", AXES[0], "doc\x00"), 6055),
    ],
    ids=str,
)
def test_refused_nodes(store: QedgeVectorStore, path: Path, bad: TextNode, code: int) -> None:
    """Nothing of the call is written, neither the good node before nor the bad one."""
    before = contents(path)
    with pytest.raises(QedgeError) as caught:
        store.add([node("good", "Good.", AXES[0]), bad])
    assert caught.value.code == code
    assert contents(path) == before


@pytest.mark.usefixtures("store")
def test_another_model(path: Path) -> None:
    """Vectors of another model are neither written nor asked for."""
    other = QedgeVectorStore(path, "another")
    for attempt in (lambda: other.add([node("x", "x", AXES[0])]), lambda: query(other)):
        with pytest.raises(QedgeError, match="6012"):
            attempt()
    with (
        Pipeline.open(path, embedder=CountingEmbedder(dimensions=3)) as pipeline,
        pytest.raises(QedgeError, match="6012"),
    ):
        pipeline.run(FolderSource(path.parent))


def test_beside_a_pipeline(tmp_path: Path, path: Path) -> None:
    """In one collection: a run neither prunes the nodes nor takes their vectors for those of its texts, and the store
    reads what was ingested but deletes none of it."""
    embedder = CountingEmbedder()
    folder = write(tmp_path / "docs", {"a.txt": "The ferry leaves at six.\n", "b.txt": "Use two lines.\n"})
    store = QedgeVectorStore(path, QedgeEmbedding(embedder))
    odd = embedder.embed_query("something else").tolist()
    store.add([node("mine", "The ferry leaves at six.", odd, "a.txt")])
    with Pipeline.open(path, embedder=embedder) as pipeline:
        result = pipeline.run(FolderSource(folder, source_id="docs"))
        assert (result.texts_embedded, result.documents_removed) == (2, 0)
        counts = pipeline.counts()
        assert (counts["documents"], counts["recipe_stale"], counts["stale"]) == (3, 0, 0)
        status = CliRunner().invoke(main, ["status", "--db", str(path), "--json"])
        assert json.loads(status.stdout)["outstanding"]["documents_to_try_again"] == 0
        (folder / "b.txt").unlink()
        assert pipeline.run(FolderSource(folder, source_id="docs")).documents_removed == 1
        assert pipeline.prune(FolderSource(folder, source_id="docs")).documents_removed == 0
    found = store.query(
        VectorStoreQuery(query_embedding=embedder.embed_query("The ferry leaves at six.").tolist(), similarity_top_k=5)
    )
    assert found.nodes is not None
    assert found.ids is not None
    ingested = found.nodes[0]
    assert found.similarities is not None
    assert found.similarities[0] == pytest.approx(1.0)
    assert found.similarities[1] < 0.99
    assert (ingested.ref_doc_id, ingested.metadata["source_id"], found.ids[1]) == ("a.txt", "docs", "mine")
    assert [each.node_id for each in store.get_nodes([ingested.node_id])] == [ingested.node_id]
    store.delete("a.txt")
    store.delete_nodes([ingested.node_id])
    store.clear()
    assert [each.node_id for each in store.get_nodes()] == [ingested.node_id]
    with pytest.raises(QedgeError, match="6005"):
        QedgeVectorStore(path, QedgeEmbedding(embedder), source_id="docs").add([node("x", "x", odd)])
    check_integrity(path)


@pytest.mark.usefixtures("store")
def test_removed_by_other_means(path: Path) -> None:
    """`remove` takes a document out; its nodes are gone, and can be written again."""
    with Pipeline.open(path, embedder=CountingEmbedder(dimensions=3)) as pipeline:
        assert pipeline.remove("llamaindex", ["trips"]).documents_removed == 1
    store = QedgeVectorStore(path, "axes")
    assert ids(store) == ["club", "lone"]
    store.add(NODES[:1])
    assert ids(store) == ["boat", "club", "lone"]
    check_integrity(path)


def test_before_anything_is_written(path: Path) -> None:
    """Reading and deleting find nothing, and make no file."""
    store = QedgeVectorStore(path, "axes")
    store.delete("x")
    store.delete_nodes(["x"])
    store.clear()
    assert (ids(store), query(store), path.exists()) == ([], [], False)
    assert store.add([]) == []


def test_one_writer_at_a_time(store: QedgeVectorStore, path: Path) -> None:
    """Writers of one source wait for one another; one that waits too long is told who has it."""
    with ThreadPoolExecutor(12) as threads:
        for n in range(12):
            threads.submit(store.add, [node(f"t{n}", f"Thread {n}.", AXES[n % 3], f"d{n % 4}")])
    assert len(ids(store)) == 16
    check_integrity(path)
    with store.client as collection:
        state = StateStore(collection._database, "chunks")
        with run_lock(path, state, "llamaindex"), pytest.raises(QedgeError, match="6008"):
            QedgeVectorStore(path, "axes", lock_wait=0.1).add([node("x", "x", AXES[0])])


def test_async_forms(store: QedgeVectorStore) -> None:
    """They do what the others do."""

    async def all_of_them() -> None:
        await store.async_add([node("new", "New.", AXES[0], "new")])
        assert len(await store.aget_nodes()) == 5
        found = await store.aquery(VectorStoreQuery(query_embedding=AXES[1], similarity_top_k=1))
        assert found.ids == ["cart"]
        await store.adelete("new")
        await store.adelete_nodes(["lone"])
        assert len(await store.aget_nodes()) == 3
        await store.aclear()
        assert await store.aget_nodes() == []

    asyncio.run(all_of_them())


def test_what_json_does_not_hold(path: Path) -> None:
    """Times come back as text, as in LlamaIndex's own stores; what has no JSON form at all is refused."""
    store = QedgeVectorStore(path, "axes")
    store.add([node("x", "x", AXES[0], when=datetime(2024, 5, 1, tzinfo=timezone.utc))])
    assert store.get_nodes()[0].metadata == {"when": "2024-05-01T00:00:00Z"}
    with pytest.raises(QedgeError, match="6005"):
        store.add([node("y", "y", AXES[0], what=object())])
