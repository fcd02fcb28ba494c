"""`qedge prune`, `remove`, `export` and `diagnostics`."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import apsw
import pyarrow.parquet as pq
import pytest

from qedge_dagster.artifacts.files import ArtifactFolder, default_root
from qedge_dagster.state import StageVersions
from tests.cli.conftest import DOCUMENTS, Invoke


def _documents(database: Path) -> list[str]:
    with apsw.Connection(str(database)) as connection:
        return [row[0] for row in connection.execute("SELECT DISTINCT document_id FROM chunks ORDER BY 1")]


def test_prune(qedge: Invoke, ingested: Path, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents that are gone are removed, without the model that made the collection."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    (docs / "notes.txt").unlink()
    result = qedge("prune", docs, "--source-id", "club")
    assert result.exit_code == 0, result.stderr
    assert "2 documents seen, 1 removed" in result.stdout
    assert _documents(ingested) == ["boats/engine.md", "boats/mooring.md"]


def test_prune_selects_like_ingest(qedge: Invoke, ingested: Path, docs: Path) -> None:
    """What the patterns leave out counts as gone."""
    result = json.loads(qedge("prune", docs, "--source-id", "club", "--pattern", "*.md", "--json").stdout)
    assert (result["outcome"], result["documents_removed"]) == ("completed", 1)
    assert _documents(ingested) == ["boats/engine.md", "boats/mooring.md"]


def test_prune_guard(qedge: Invoke, ingested: Path, docs: Path) -> None:
    """An empty folder removes nothing unless that is meant."""
    shutil.rmtree(docs)
    docs.mkdir()
    assert "the source holds no document at all; --allow-empty" in qedge("prune", docs, "--source-id", "club").stdout
    assert len(_documents(ingested)) == 3
    assert qedge("prune", docs, "--source-id", "club", "--allow-empty").exit_code == 0
    assert _documents(ingested) == []


def test_artefacts_beside_the_database_are_kept_right(qedge: Invoke, ingested: Path, docs: Path) -> None:
    """Prune sweeps what belongs to no current version, as far as it is of the pruned source."""
    folder = ArtifactFolder(default_root(ingested), "chunks")
    nothing = StageVersions(*[bytes(16)] * 4)
    old, other = (folder.paths(source, "gone.txt", nothing)["document_chunks"] for source in ("club", "another"))
    old.parent.mkdir(parents=True)
    old.touch()
    other.touch()
    assert qedge("prune", docs, "--source-id", "club").exit_code == 0
    assert list(old.parent.iterdir()) == [other]


def test_artefacts_in_the_folder_are_no_documents(qedge: Invoke, docs: Path, model: Path) -> None:
    """Where the database lies among the documents, so do its artefacts: they are left out with it."""
    database = docs / "own.db"
    stage = ArtifactFolder(default_root(database), "chunks").stage("document_chunks")
    stage.mkdir(parents=True)
    (stage / "x.parquet").touch()
    result = json.loads(qedge("ingest", docs, "--db", database, "--model", model, "--json").stdout)
    assert result["documents_seen"] == len(DOCUMENTS)


def test_remove(qedge: Invoke, ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named documents go, with their chunks and their state, and no model is needed."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    result = qedge("remove", "notes.txt", "boats/engine.md")
    assert result.exit_code == 0, result.stderr
    assert "2 removed" in result.stdout
    assert _documents(ingested) == ["boats/mooring.md"]
    assert json.loads(qedge("status", "--json").stdout)["documents"] == 1


def test_remove_json_counts_by_document(qedge: Invoke, ingested: Path) -> None:  # noqa: ARG001
    """The result says how many chunks each document had."""
    result = json.loads(qedge("remove", "notes.txt", "--json").stdout)
    assert [(d["document_id"], d["outcome"]) for d in result["documents"]] == [("notes.txt", "removed")]
    assert result["documents"][0]["chunks_removed"] == result["chunks_removed"] > 0


def test_remove_all_or_none(qedge: Invoke, ingested: Path, docs: Path, model: Path) -> None:
    """An unknown id, or ids of two sources, remove nothing."""
    (docs / "new.md").write_text("# New\n\nText.\n", "utf-8")
    assert qedge("ingest", "docs/new.md", "--model", model).exit_code == 0
    for args in (["notes.txt", "unknown.md"], ["notes.txt", "docs/new.md"]):
        assert qedge("remove", *args).exit_code == 2
    assert len(_documents(ingested)) == 4


def test_remove_all_of_a_source(qedge: Invoke, ingested: Path, docs: Path, model: Path) -> None:
    """--all removes every document of one source, whose folder may be gone, and leaves the other sources alone."""
    assert qedge("ingest", "docs", "--source-id", "moved", "--model", model).exit_code == 0
    shutil.rmtree(docs)
    result = json.loads(qedge("remove", "--all", "--source-id", "club", "--json").stdout)
    assert (result["outcome"], result["documents_removed"]) == ("completed", 3)
    sources = json.loads(qedge("status", "--json").stdout)["sources"]
    assert [(source["source_id"], source["documents"]) for source in sources] == [("moved", 3)]
    assert len(_documents(ingested)) == 3


@pytest.mark.parametrize(
    "args", [[], ["--all"], ["--all", "notes.txt", "--source-id", "club"], ["--all", "--source-id", "clubs"]]
)
def test_remove_all_says_what(args: list[str], qedge: Invoke, ingested: Path) -> None:
    """Without a source, with an unknown one, or with documents as well, --all is wrong usage and removes nothing."""
    result = qedge("remove", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "6005" in result.stderr
    assert len(_documents(ingested)) == 3


def test_export(qedge: Invoke, ingested: Path) -> None:  # noqa: ARG001
    """A Parquet file with every chunk and its vector; --json says how many."""
    result = qedge("export", "out.parquet", "--json")
    table = pq.read_table("out.parquet")
    assert json.loads(result.stdout) == {"file": "out.parquet", "chunks": table.num_rows}
    assert set(table.column("document_id").to_pylist()) == set(DOCUMENTS)
    assert {len(vector) for vector in table.column("embedding").to_pylist()} == {32}
    assert qedge("export", "out.parquet").stdout == f"out.parquet: {table.num_rows} chunks\n"


def test_diagnostics(qedge: Invoke, ingested: Path, model: Path) -> None:  # noqa: ARG001
    """One fact a line, the same as one JSON object; --counts adds the counts with their caveat."""
    facts = json.loads(qedge("diagnostics", "--model", model, "--json").stdout)
    lines = qedge("diagnostics", "--model", model).stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(facts)
    assert (facts["dimensions"], facts["model_profile"], facts["last_run_outcome"]) == (32, "tiny", "completed")
    assert "documents" not in facts
    counted = json.loads(qedge("diagnostics", "--model", model, "--counts", "--json").stdout)
    assert (counted["documents"], counted["failed"], counted["stale"], counted["recipe_stale"]) == (3, 0, 0, 0)
    assert "only a run reads them" in counted["caveat"]


def test_diagnostics_of_other_options(qedge: Invoke, ingested: Path, model: Path) -> None:  # noqa: ARG001
    """Documents that other options would index again are counted as recipe-stale."""
    facts = json.loads(
        qedge("diagnostics", "--model", model, "--chunk-tokens", 40, "--min-tokens", 5, "--counts", "--json").stdout
    )
    assert (facts["budget_max_tokens"], facts["recipe_stale"]) == (40, 3)
