"""Each kind of damage is found, and nothing else; a repair mends it; and the next run makes good what was lost."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from qedge_dagster import (
    Collection,
)
from qedge_dagster.artifacts.files import ArtifactFolder
from qedge_dagster.collection.connection import Database
from qedge_dagster.pipeline.doctor import examine, mend
from qedge_dagster.state import StageVersions
from tests.pipeline.doctor.damage import DAMAGE, TEXT, kinds, source, sql
from tests.pipeline.support import CountingEmbedder, contents, ingest, write


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found_mended_and_made_good(name: str, db: Path, docs: Path) -> None:
    """Exactly this is found; after a repair nothing is; after the next run the rows are those of a sound database."""
    damage, expected = DAMAGE[name]
    before = contents(db)
    damage(db)
    assert kinds(db) == expected
    mended = mend(db)
    assert [finding.kind for finding in mended.found] == expected
    assert mended.done
    assert mended.healthy
    assert kinds(db) == []
    again = mend(db)
    assert (again.found, again.done) == ((), ())
    assert ingest(db, source(docs), CountingEmbedder()).outcome == "completed"
    assert contents(db) == before
    assert kinds(db) == []


@pytest.mark.parametrize("name", ["full-text entry deleted", "slot of another row", "index emptied", "trigger dropped"])
def test_what_the_file_holds_twice_costs_no_document(name: str, db: Path, docs: Path) -> None:
    """A repair from the file itself leaves nothing to be read or embedded again."""
    DAMAGE[name][0](db)
    before = contents(db)
    mend(db)
    result = ingest(db, source(docs), CountingEmbedder())
    assert (result.documents_skipped, result.texts_embedded) == (len(TEXT), 0)
    assert contents(db)[1:] == before[1:]


def test_a_vector_is_taken_from_an_equal_text(tmp_path: Path) -> None:
    """A chunk whose text is in the collection twice gets its vector back, and no document is indexed again."""
    docs, db = write(tmp_path / "docs", {"a.txt": "the same text", "b.txt": "the same text"}), tmp_path / "index.db"
    ingest(db, source(docs), CountingEmbedder())
    before = contents(db)
    sql("DELETE FROM chunks_vec WHERE rowid = 1")(db)
    assert mend(db).done == ("chunks: 1 chunks were given the vector of an equal text",)
    assert contents(db) == before


def test_equal_texts_of_one_document(tmp_path: Path) -> None:
    """The keys of equal texts count: with the first one damaged the others are right again after the next run."""
    block = "\n\n".join(f"## Same\n\n{'word ' * 150}" for _ in range(5))
    docs, db = write(tmp_path / "docs", {"a.md": block}), tmp_path / "index.db"
    ingest(db, source(docs), CountingEmbedder())
    before = contents(db)
    sql("UPDATE chunks SET text = 'x' WHERE _rowid = 1")(db)
    assert mend(db).healthy
    assert kinds(db) == []
    ingest(db, source(docs), CountingEmbedder())
    assert contents(db) == before


def test_artefacts_of_no_current_version(db: Path, tmp_path: Path) -> None:
    """They are found and deleted; current ones, and those of a run that is under way, are left alone."""
    root, folder = tmp_path / "artifacts", ArtifactFolder(tmp_path / "artifacts", "chunks")
    with closing(Database(db)) as database:
        row = database.connection.execute(
            "SELECT extracted, chunks, embeddings, collection_rows FROM qedge_ingest_version WHERE document_id = '0.md'"
        ).fetchone()
    current = folder.paths("s", "0.md", StageVersions(*row))["document_chunks"]
    old = folder.paths("s", "0.md", StageVersions(*[bytes(16)] * 4))["document_chunks"]
    other = folder.paths("gone", "0.md", StageVersions(*row))["document_chunks"]
    current.parent.mkdir(parents=True)
    for path in (current, old, other):
        path.touch()
    assert [(f.kind, f.count) for f in examine(db, artifacts=root).found] == [("artifacts_leftover", 2)]
    assert mend(db, artifacts=root).healthy
    assert list(current.parent.iterdir()) == [current]


def test_a_repaired_database_answers(db: Path) -> None:
    """Search works between a repair and the next run: what is lost is not found, the rest is."""
    DAMAGE["vectors deleted"][0](db)
    mend(db)
    with Collection.open(db, embedder=CountingEmbedder()) as collection:
        kept = collection.chunk_count()
        assert len(collection.search("word", top=kept + 5)) == kept
