"""Stage artefacts: what they hold, when they come and go, and what they spare."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from qedge_dagster import ChunkingOptions, IngestionBudget, IngestionOptions, ItemsSource, RunOptions, SourceItem
from qedge_dagster.artifacts.files import ArtifactFolder
from qedge_dagster.errors import QedgeError
from qedge_dagster.pipeline.events import DocumentIndexed, Event
from tests.artifacts.support import STAGES, Index
from tests.pipeline.support import CountingEmbedder, prose, write

_SMALL = IngestionOptions(chunking=ChunkingOptions(max_tokens=40))


@pytest.fixture
def index(tmp_path: Path) -> Index:
    index = Index(tmp_path)
    write(
        index.docs,
        {
            "a.md": "---\ntitle: Roofs\n---\n# Roof\n\n" + "\n\n".join(prose(1, 8)) + "\n\n## Gutter\n\nIt leaks.",
            "b.txt": "\n\n".join(prose(2, 12)),
            "copy of b.txt": "\n\n".join(prose(2, 12)),
            "empty.txt": "",
        },
    )
    return index


def test_files_hold_what_the_collection_does(index: Index) -> None:
    """A file for each document and stage, equal documents included; the rows and vectors are the collection's."""
    assert index.run().outcome == "completed"
    index.check()
    assert [len(index.files(stage)) for stage in STAGES] == [4, 4, 4]


def test_pandas_reads_a_stage_as_one_data_set(index: Index) -> None:
    """All files of a stage share a schema; unfinished files beside them are not read."""
    index.run()
    folder = index.artifacts / "chunks"
    for stage in STAGES:
        (folder / stage / ".x.parquet.partial").write_bytes(b"half")
    chunks = pd.read_parquet(folder / "document_chunks")
    vectors = pd.read_parquet(folder / "chunk_embeddings")
    texts = pd.read_parquet(folder / "extracted_documents").set_index("document_id")
    assert set(chunks.key) == set(vectors.key)
    assert set(vectors.embedding.map(lambda v: (v.dtype.name, v.shape))) == {("float32", (8,))}
    assert set(texts.index) == {"a.md", "b.txt", "copy of b.txt", "empty.txt"}
    for row in chunks.itertuples():
        assert texts.text[row.document_id][row.char_start : row.char_end] == row.text
    gutter = chunks[chunks.text.str.contains("It leaks")].iloc[0]
    assert list(gutter.headings) == gutter.heading_path.split(" \u203a ")
    assert gutter.embed_text == f"{gutter.heading_path}\n\n{gutter.text}"


def test_the_event_names_files_and_preview(index: Index) -> None:
    """`DocumentIndexed` says where the artefacts are, and how the text begins."""
    events: list[Event] = []
    index.run(on_event=events.append)
    indexed = {e.result.document_id: e for e in events if isinstance(e, DocumentIndexed)}
    assert len(indexed) == 4
    for event in indexed.values():
        assert tuple(event.artifacts) == STAGES
        assert all(path.is_file() for path in event.artifacts.values())
    assert indexed["b.txt"].preview == "\n\n".join(prose(2, 12))[:300]


def test_an_edit_replaces_and_a_removal_removes(index: Index) -> None:
    """Files of superseded versions go, as do those of removed and renamed documents."""
    index.run()
    write(index.docs, {"b.txt": "\n\n".join(prose(3, 12))})
    (index.docs / "a.md").rename(index.docs / "c.md")
    (index.docs / "empty.txt").unlink()
    index.run()
    index.check()
    assert len(index.files("document_chunks")) == 3
    with index.open() as pipeline:
        pipeline.remove("s", ["c.md"])
    index.check()
    (index.docs / "copy of b.txt").unlink()
    with index.open() as pipeline:
        pipeline.prune(index.source)
    index.check()
    assert len(index.files("extracted_documents")) == 1


def test_a_save_with_the_same_text_keeps_the_files(index: Index) -> None:
    """Other bytes, the same text: the version stays, and what was just written is not taken for the old file."""
    index.run()
    before = index.files("extracted_documents")
    write(index.docs, {"b.txt": b"\xef\xbb\xbf" + "\r\n\r\n".join(prose(2, 12)).encode()})
    assert index.run().documents_indexed == 1
    index.check()
    assert len(index.files("extracted_documents") & before) >= 3


def test_rechunking_extracts_nothing(index: Index) -> None:
    """A change of chunk size chunks every document again, from the artefacts."""
    index.run()
    assert sum(index.extractor.calls.values()) == 3
    assert index.run(_SMALL).documents_indexed == 4
    assert sum(index.extractor.calls.values()) == 3
    index.check()
    index.run(IngestionOptions(normalize_text=False))
    assert sum(index.extractor.calls.values()) == 6


def test_a_rebuilt_index_equals_one_from_scratch(index: Index, tmp_path: Path) -> None:
    """Chunks made from an artefact are those made from an extraction."""
    index.run()
    index.run(_SMALL)
    (tmp_path / "other").mkdir()
    other = Index(tmp_path / "other")
    other.source = index.source
    other.run(_SMALL)
    assert other.expected() == index.expected()


@pytest.mark.parametrize("damage", [b"", b"PAR1 no more PAR1", None])
def test_a_damaged_artefact_is_extracted_again(index: Index, damage: bytes | None) -> None:
    """Empty, broken or missing: the document is extracted, and its file is whole again."""
    index.run()
    for path in (index.artifacts / "chunks" / "extracted_documents").iterdir():
        if damage is None:
            path.unlink()
        else:
            path.write_bytes(damage)
    assert index.run(_SMALL).documents_failed == 0
    assert sum(index.extractor.calls.values()) == 6
    index.check()


def test_an_artefact_of_another_document_is_not_believed(index: Index) -> None:
    """The content is checked against the version, not only the name."""
    index.run()
    folder = index.artifacts / "chunks" / "extracted_documents"
    files = sorted(folder.iterdir())
    contents = [path.read_bytes() for path in files]
    for path, content in zip(files, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    index.run(_SMALL)
    assert sum(index.extractor.calls.values()) == 6
    index.check()


def test_force_extracts(index: Index) -> None:
    """`force` trusts no artefact."""
    index.run()
    index.run(run=RunOptions(force=True))
    assert set(index.extractor.calls.values()) == {2}
    index.check()


@pytest.mark.parametrize("where", ["write", "rename"])
def test_a_full_disk_fails_the_document(index: Index, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """6207 before the switch: the old rows stay, no unfinished file is left, and the next run mends it."""
    index.run()
    before = index.expected()
    write(index.docs, {"b.txt": "\n\n".join(prose(3, 12))})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    if where == "write":
        monkeypatch.setattr(Path, "write_bytes", full)
    else:
        monkeypatch.setattr(os, "replace", full)
    result = index.run()
    monkeypatch.undo()
    assert [(d.document_id, d.failure.code) for d in result.documents if d.failure] == [("b.txt", 6207)]
    assert index.expected() == before
    assert {stage: index.files(stage) for stage in STAGES} == before
    assert index.run().documents_indexed == 1
    index.check()


def test_a_folder_that_cannot_be_made(index: Index) -> None:
    """6207 with the folder in the remedy; nothing is indexed."""
    index.artifacts.write_text("a file in its place")
    result = index.run()
    failures = {d.failure.code: d.failure.remedy for d in result.documents if d.failure}
    assert set(failures) == {6207}
    assert str(index.artifacts) in failures[6207]
    assert result.documents_indexed == 0


def test_sweep_removes_what_a_crash_left(index: Index) -> None:
    """Files of no current version and unfinished ones go with a prune; those of other sources stay."""
    index.run()
    folder = index.artifacts / "chunks" / "document_chunks"
    name = sorted(index.files("document_chunks"))[0]
    prefix = name.split("-")[0]
    (folder / f"{prefix}-{'0' * 32}-{'1' * 32}.parquet").write_bytes(b"old")
    (folder / f".{name}.partial").write_bytes(b"half")
    other = folder / f"{'f' * 16}-{'0' * 32}-{'1' * 32}.parquet"
    other.write_bytes(b"another source's")
    with index.open() as pipeline:
        pipeline.prune(index.source)
    assert other.exists()
    other.unlink()
    index.check()


def test_a_rebuild_keeps_its_own_until_it_is_switched(index: Index) -> None:
    """While a rebuild is prepared both models have their artefacts; then the new ones take the old ones' place. It
    extracts nothing."""
    index.run()
    old = index.expected()
    index.embedder = CountingEmbedder("model-b", dimensions=4)
    (index.docs / "c.txt").write_text("one more")
    budget = IngestionBudget(max_documents=2)
    assert index.run(run=RunOptions(rebuild=True, budget=budget)).outcome == "suspended"
    index.check()
    assert index.expected() == old
    assert len(index.files("chunk_embeddings", "chunks_rebuild")) == 2
    assert index.run(run=RunOptions(rebuild=True)).outcome == "completed"
    index.check()
    assert not (index.artifacts / "chunks_rebuild").exists()
    assert index.extractor.calls == Counter({"b.txt": 1, "copy of b.txt": 1, "empty.txt": 1, "c.txt": 1})


def test_documents_indexed_without_artefacts_get_them_when_they_change(index: Index) -> None:
    """Switched on later, artefacts come document by document, with the vectors of unchanged chunks."""
    index.run(artifacts=False)
    assert not index.artifacts.exists()
    with (index.docs / "b.txt").open("a") as stream:
        stream.write("\n\n" + prose(5, 1)[0])
    index.run()
    assert len(index.files("chunk_embeddings")) == 1
    index.run(run=RunOptions(force=True))
    index.check()


def test_long_and_odd_ids(index: Index) -> None:
    """An id of 4 KB and one of other scripts, with every separator of paths."""
    ids = ["x" * 4096 + ".txt", "../../etc/\u202e\u4e2d\\w\u00f6rd \U0001f642.txt"]
    items = [SourceItem(i, "text/plain", lambda: io.BytesIO(b"some words")) for i in ids]
    with index.open() as pipeline:
        result = pipeline.run(ItemsSource(items, "s"))
    assert result.documents_indexed == 2
    index.check()


def test_off_imports_nothing(tmp_path: Path) -> None:
    """Without a folder for artefacts the engine runs without pyarrow."""
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "sys.modules['pyarrow'] = sys.modules['pandas'] = None\n"
        "from qedge_dagster import FolderSource, IngestionPipeline\n"
        "from tests.pipeline.support import CountingEmbedder\n"
        "with IngestionPipeline.open(Path(sys.argv[1]) / 'x.db', embedder=CountingEmbedder()) as pipeline:\n"
        "    print(pipeline.run(FolderSource(sys.argv[1], '*.txt')).documents_indexed)\n"
    )
    (tmp_path / "a.txt").write_text("some words")
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_sweep_of_a_folder_that_is_not_there(index: Index) -> None:
    """A prune before the first artefact removes nothing and makes nothing."""
    index.run(artifacts=False)
    with index.open() as pipeline:
        pipeline.prune(index.source)
    assert not index.artifacts.exists()


def test_too_long_a_path_is_an_error_of_the_document(index: Index) -> None:
    """What the file system refuses is 6207 as well."""
    index.artifacts = index.artifacts / ("x" * 300)
    result = index.run()
    assert {d.failure.code for d in result.documents if d.failure} == {6207}
    with pytest.raises(QedgeError):
        ArtifactFolder(index.artifacts, "chunks").write({index.artifacts / "a": memoryview(b"")})


def test_a_rebuild_that_dies_before_its_switch(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new model's files lie beside the old ones by then; the old ones stay current, and a later run ends it."""
    index.run()
    old = index.expected()
    index.embedder = CountingEmbedder("model-b", dimensions=4)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("qedge_dagster.pipeline.pipeline.replace_when_ready", die)
        with pytest.raises(KeyboardInterrupt):
            index.run(run=RunOptions(rebuild=True))
    assert index.expected() == old
    index.check_contents()
    assert len(index.files("chunk_embeddings")) == 2 * len(old["chunk_embeddings"])
    assert index.run(run=RunOptions(rebuild=True)).outcome == "completed"
    index.check()


def test_a_rebuild_of_two_sources(index: Index) -> None:
    """The files of every source are adopted and swept with the last one's switch."""
    second = ItemsSource([SourceItem("i.txt", "text/plain", lambda: io.BytesIO(b"other words"))], "t")

    def run_both() -> list[str]:
        index.run(run=RunOptions(rebuild=True))
        index.check()
        with index.open() as pipeline:
            return [pipeline.run(second, options=RunOptions(rebuild=True)).outcome]

    assert run_both() == ["completed"]
    index.check()
    index.embedder = CountingEmbedder("model-b")
    assert run_both() == ["completed"]
    index.check()
    assert not (index.artifacts / "chunks_rebuild").exists()
