"""Re-running costs one read per unchanged document and one embedding per changed chunk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from qedge_dagster import ChunkingOptions, FolderSource, IngestionOptions, ItemsSource, QedgeError, RunOptions
from qedge_dagster.collection.connection import Database
from qedge_dagster.pipeline.events import DocumentIndexed
from tests.pipeline.support import CountingEmbedder, check_integrity, contents, events_of, ingest, prose, write


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    files = {f"{name}.txt": "\n\n".join(prose(seed, 12)) for seed, name in enumerate("abcde")}
    files["guide/start.md"] = "# Start\n\n" + "\n\n".join(prose(90, 6)) + "\n\n## Next\n\n" + "\n\n".join(prose(91, 6))
    return write(tmp_path / "docs", files)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


def test_second_run_reads_each_document_once_and_writes_only_its_own_row(docs: Path, db: Path) -> None:
    """An unchanged pass opens every file exactly once and touches no table but that of the runs."""
    embedder = CountingEmbedder()
    first = ingest(db, FolderSource(docs, source_id="s"), embedder)
    assert (first.outcome, first.documents_indexed, first.documents_skipped) == ("completed", 6, 0)
    assert first.texts_embedded == len(embedder.texts) == first.chunks_added > 6
    before = contents(db)
    opened: list[str] = []

    def counted():
        for item in FolderSource(docs, source_id="s").items():
            yield replace(item, open=lambda item=item: opened.append(item.document_id) or item.open())

    with written_tables() as changed:
        second = ingest(db, ItemsSource(counted, "s"), embedder)
    assert (second.outcome, second.documents_skipped, second.embed_calls) == ("completed", 6, 0)
    assert second.documents == ()
    assert sorted(opened) == sorted(set(opened))
    assert len(opened) == 6
    assert contents(db) == before
    assert changed == {"qedge_ingest_run"}


@contextmanager
def written_tables() -> Iterator[set[str]]:
    """The tables of the file in which any connection opened meanwhile changes a row."""
    tables: set[str] = set()

    def note(update: apsw.PreUpdate) -> None:
        if update.database_name == "main":
            tables.add(update.table_name)

    def hook(connection: apsw.Connection) -> None:
        connection.preupdate_hook(note)

    apsw.connection_hooks.append(hook)
    try:
        yield tables
    finally:
        apsw.connection_hooks.remove(hook)


def test_rename_and_copy_embed_nothing(docs: Path, db: Path) -> None:
    """A renamed or copied file takes its vectors from the rows of equal content."""
    embedder = CountingEmbedder()
    ingest(db, FolderSource(docs), embedder)
    embedder.texts.clear()
    (docs / "a.txt").rename(docs / "renamed.txt")
    shutil.copy(docs / "b.txt", docs / "guide" / "copy.txt")
    result = ingest(db, FolderSource(docs), embedder)
    assert embedder.texts == []
    assert (result.documents_indexed, result.documents_removed) == (2, 1)
    assert result.vectors_reused == result.chunks_added > 0
    check_integrity(db)


def test_deleting_one_of_two_identical_files_keeps_the_others_rows(docs: Path, db: Path) -> None:
    """Rows belong to a document, not to their content."""
    shutil.copy(docs / "b.txt", docs / "twin.txt")
    ingest(db, FolderSource(docs), CountingEmbedder())
    twin = [row for row in contents(db)[0] if row[2] == "twin.txt"]
    (docs / "b.txt").unlink()
    result = ingest(db, FolderSource(docs), CountingEmbedder())
    assert result.documents_removed == 1
    assert [row for row in contents(db)[0] if row[2] == "twin.txt"] == twin != []
    assert not [row for row in contents(db)[0] if row[2] == "b.txt"]
    check_integrity(db)


def test_an_emptied_file_loses_its_chunks(docs: Path, db: Path) -> None:
    """A document truncated to nothing is indexed as empty, not kept as it was."""
    ingest(db, FolderSource(docs), CountingEmbedder())
    (docs / "a.txt").write_bytes(b"")
    result = ingest(db, FolderSource(docs), CountingEmbedder())
    assert result.documents_indexed == 1
    assert result.documents[0].outcome == "indexed"
    assert result.chunks_removed > 0
    assert not [row for row in contents(db)[0] if row[2] == "a.txt"]
    assert ingest(db, FolderSource(docs), CountingEmbedder()).documents_skipped == 6


def test_touch_and_line_endings_embed_nothing(docs: Path, db: Path) -> None:
    """A new modification time is no change; new line endings stop at the extracted text."""
    embedder = CountingEmbedder()
    ingest(db, FolderSource(docs), embedder)
    embedder.texts.clear()
    os.utime(docs / "a.txt", (1, 1))
    assert ingest(db, FolderSource(docs), embedder).documents_skipped == 6
    text = (docs / "b.txt").read_bytes()
    (docs / "b.txt").write_bytes(text.replace(b"\n", b"\r\n"))
    events = events_of(db, FolderSource(docs), embedder)
    [indexed] = [event for event in events if isinstance(event, DocumentIndexed)]
    assert indexed.result.document_id == "b.txt"
    assert indexed.versions == indexed.before
    assert embedder.texts == []


def test_an_edit_embeds_its_own_chunks_and_repairs_the_moved_ones(docs: Path, db: Path) -> None:
    """A paragraph added at the top moves all other chunks: their position is corrected, their vectors stay."""
    embedder = CountingEmbedder()
    ingest(db, FolderSource(docs), embedder)
    embedder.texts.clear()
    (docs / "a.txt").write_text("A new paragraph at the top.\n\n" + (docs / "a.txt").read_text())
    result = ingest(db, FolderSource(docs), embedder)
    assert 1 <= len(embedder.texts) <= 4
    [document] = result.documents
    assert document.chunks_repaired > 0
    assert document.chunks_unchanged >= document.chunks_repaired
    check_integrity(db)
    fresh = db.with_name("fresh.db")
    ingest(fresh, FolderSource(docs), CountingEmbedder())
    assert contents(db)[0] == contents(fresh)[0]


def test_a_repair_does_not_touch_vectors_or_full_text(docs: Path, db: Path) -> None:
    """Chunks that merely move are not written to the vector or full-text tables."""
    ingest(db, FolderSource(docs), CountingEmbedder())
    (docs / "a.txt").write_text("\n\n\n" + (docs / "a.txt").read_text())
    with written_tables() as changed:
        result = ingest(db, FolderSource(docs), CountingEmbedder())
    assert result.chunks_repaired > 0
    assert result.chunks_added == result.chunks_removed == 0
    assert changed == {"chunks", "qedge_ingest_document", "qedge_ingest_run", "qedge_ingest_version"}
    (docs / "a.txt").write_text("One more.\n\n" + (docs / "a.txt").read_text())
    with written_tables() as changed:
        ingest(db, FolderSource(docs), CountingEmbedder())
    assert changed > {"chunks_fts_data", "chunks_vec_vector_chunks00"}


def test_other_chunk_options_re_index_every_document(docs: Path, db: Path) -> None:
    """The recipe is part of the gate: unchanged bytes under other options are processed."""
    ingest(db, FolderSource(docs), CountingEmbedder())
    options = IngestionOptions(chunking=ChunkingOptions(max_tokens=100))
    result = ingest(db, FolderSource(docs), CountingEmbedder(), options=options)
    assert (result.documents_indexed, result.documents_skipped) == (6, 0)
    assert ingest(db, FolderSource(docs), CountingEmbedder(), options=options).documents_skipped == 6


def test_a_strict_recipe_refuses_other_options(docs: Path, db: Path) -> None:
    """6009 instead of a re-index that nobody wanted."""
    ingest(db, FolderSource(docs), CountingEmbedder())
    before = contents(db)
    options = IngestionOptions(chunking=ChunkingOptions(max_tokens=100))
    result = ingest(db, FolderSource(docs), CountingEmbedder(), options=options, run=RunOptions(strict_recipe=True))
    assert result.outcome == "failed"
    assert result.failure is not None
    assert result.failure.code == 6009
    assert contents(db) == before


def test_the_same_model_under_another_name_changes_nothing(docs: Path, db: Path) -> None:
    """The hash of the model file counts, not its name."""
    ingest(db, FolderSource(docs), CountingEmbedder("same-bytes", identifier="old name"))
    embedder = CountingEmbedder("same-bytes", identifier="new name")
    result = ingest(db, FolderSource(docs), embedder)
    assert (result.documents_skipped, embedder.texts) == (6, [])
    write(docs, {"a.txt": "An edit under the new name."})
    assert ingest(db, FolderSource(docs), embedder).documents_indexed == 1


def test_another_model_under_the_same_name_is_refused(docs: Path, db: Path) -> None:
    """Two vector spaces are never mixed, though the dimensions agree."""
    ingest(db, FolderSource(docs), CountingEmbedder("one"))
    before = contents(db)
    with pytest.raises(QedgeError) as error:
        ingest(db, FolderSource(docs), CountingEmbedder("two"))
    assert error.value.code == 6012
    assert contents(db) == before


def test_rows_that_the_collection_lost_are_made_again(docs: Path, db: Path) -> None:
    """State that claims chunks which are gone does not make a document unchanged."""
    ingest(db, FolderSource(docs), CountingEmbedder())
    before = contents(db)
    with closing(Database(db)) as opened:
        opened.connection.execute("DELETE FROM chunks WHERE document_id = 'c.txt' AND ordinal = 0")
    result = ingest(db, FolderSource(docs), CountingEmbedder())
    assert (result.documents_indexed, result.documents_skipped) == (1, 5)
    assert contents(db) == before


def test_force_processes_everything_and_embeds_nothing_again(docs: Path, db: Path) -> None:
    """Forced documents are extracted and compared; equal chunks keep their vectors."""
    ingest(db, FolderSource(docs), CountingEmbedder())
    before = contents(db)
    embedder = CountingEmbedder()
    result = ingest(db, FolderSource(docs), embedder, run=RunOptions(force=True))
    assert (result.documents_indexed, embedder.texts) == (6, [])
    assert contents(db) == before


def test_trusted_timestamps_skip_without_reading(docs: Path, db: Path) -> None:
    """The optional gate: equal size and time, no read at all."""
    ingest(db, FolderSource(docs, source_id="s"), CountingEmbedder())
    opened: list[str] = []

    def counted():
        for item in FolderSource(docs, source_id="s").items():
            yield replace(item, open=lambda item=item: opened.append(item.document_id) or item.open())

    os.utime(docs / "a.txt", (1, 1))
    result = ingest(db, ItemsSource(counted, "s"), CountingEmbedder(), run=RunOptions(trust_timestamps=True))
    assert result.documents_skipped == 6
    assert opened == ["a.txt"]
