"""`qedge status` and `qedge inspect`."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import apsw

from qedge_dagster.artifacts.files import ArtifactFolder, default_root
from qedge_dagster.collection.connection import Database
from qedge_dagster.state import StateStore
from tests.cli.conftest import DOCUMENTS, Invoke


def test_status(qedge: Invoke, ingested: Path) -> None:  # noqa: ARG001
    """Documents, chunks, sources and the last run; nothing outstanding, with the caveat."""
    text = qedge("status").stdout
    assert text.startswith("qedge.db, collection chunks: 3 documents, ")
    assert "\n  club  3 documents  " in text
    assert "\nlast run: completed, 20" in text
    assert "\noutstanding: nothing known\n" in text
    assert "only a run reads them" in text


def test_status_json(qedge: Invoke, ingested: Path) -> None:
    """The same facts by name; the chunks are those of the table."""
    facts = json.loads(qedge("status", "--json").stdout)
    with apsw.Connection(str(ingested)) as connection:
        assert facts["chunks"] == connection.execute("SELECT count(*) FROM chunks").get
    assert facts["documents"] == len(DOCUMENTS)
    assert facts["not_indexed"] == []
    assert facts["last_run"]["outcome"] == "completed"
    assert "only a run reads them" in facts["caveat"]


def test_failures_with_remedy(qedge: Invoke, ingested: Path, docs: Path, model: Path) -> None:  # noqa: ARG001
    """Failed documents are listed with code and remedy; one that kept older chunks is stale."""
    (docs / "notes.txt").write_bytes(bytes(500))
    (docs / "photo.jpeg").write_bytes(b"\xff\xd8\xff")
    assert qedge("ingest", docs, "--source-id", "club", "--model", model).exit_code == 0
    text = qedge("status").stdout
    assert "  6104 DocumentMalformed: 1 document. Check that the content" in text
    assert "\n    notes.txt: " in text
    assert "\n  1 stale document: gone or failed, with older chunks kept\n" in text
    facts = json.loads(qedge("status", "--json").stdout)
    assert [(d["document_id"], d["status"], d["failure"]["code"]) for d in facts["not_indexed"]] == [
        ("notes.txt", "failed", 6104),
        ("photo.jpeg", "unsupported", 6101),
    ]


def test_suspended_runs_are_outstanding(qedge: Invoke, docs: Path, model: Path) -> None:
    """A source whose last run did not complete is outstanding until one does."""
    args = ["ingest", docs, "--source-id", "club", "--model", model]
    assert qedge(*args, "--max-documents", 1).exit_code == 75
    text = qedge("status").stdout
    assert "last run: suspended (budget:documents), " in text
    assert "\n  source club: its last run did not complete; run it again\n" in text
    assert qedge(*args).exit_code == 0
    assert "outstanding: nothing known" in qedge("status").stdout


def test_documents_kept_on_request_are_stale(qedge: Invoke, ingested: Path, docs: Path, model: Path) -> None:  # noqa: ARG001
    """A document that is gone but was not removed counts as stale."""
    (docs / "notes.txt").unlink()
    assert qedge("ingest", docs, "--source-id", "club", "--model", model, "--no-prune").exit_code == 0
    assert json.loads(qedge("status", "--json").stdout)["outstanding"]["documents_stale"] == 1


def test_dead_runs_are_shown(qedge: Invoke, ingested: Path) -> None:
    """A run that never ended is shown as active or dead, with what it has committed."""
    with apsw.Connection(str(ingested)) as connection:
        connection.execute("UPDATE qedge_ingest_run SET finished_utc = NULL, outcome = NULL")
    text = qedge("status").stdout
    assert ": active, or its process died; 3 documents indexed, +" in text
    assert "last run: none that has ended" in text


def test_reading_writes_nothing(qedge: Invoke, ingested: Path) -> None:
    """Reading commands leave the file as it was, byte for byte."""
    before = ingested.read_bytes()
    for line in ("status", "inspect notes.txt", "search coffee --mode keyword", "export x.parquet"):
        assert qedge(*line.split()).exit_code == 0
    assert ingested.read_bytes() == before


def test_inspect(qedge: Invoke, ingested: Path) -> None:  # noqa: ARG001
    """State, stage versions, and each chunk with position, tokens, headings and a preview."""
    text = qedge("inspect", "boats/mooring.md").stdout
    assert "source_id        club\n" in text
    assert "status           indexed\n" in text
    assert "collection_rows  " in text
    assert "\n[0] " in text
    assert " tokens  " in text
    assert "\n    Mooring" in text
    assert "Tie the bow line" in text


def test_inspect_json(qedge: Invoke, ingested: Path) -> None:  # noqa: ARG001
    """The state row, the version of each stage and every chunk, hashes as hex."""
    facts = json.loads(qedge("inspect", "notes.txt", "--json").stdout)
    assert (facts["document_id"], facts["status"], facts["failure"]) == ("notes.txt", "indexed", None)
    assert list(facts["versions"]) == ["extracted", "chunks", "embeddings", "collection_rows"]
    assert all(len(version) == 32 for version in facts["versions"].values())
    assert len(facts["chunks"]) == facts["chunk_count"]
    chunk = facts["chunks"][0]
    assert chunk["text"] == DOCUMENTS["notes.txt"][chunk["char_start"] : chunk["char_end"]]
    assert len(chunk["content_hash"]) == 32


def test_inspect_a_failed_document(qedge: Invoke, docs: Path, model: Path) -> None:
    """A document without chunks shows why."""
    (docs / "core.log").write_bytes(bytes(500))
    assert qedge("ingest", docs, "--model", model).exit_code == 0
    assert "failure " in qedge("inspect", "core.log").stdout
    facts = json.loads(qedge("inspect", "core.log", "--json").stdout)
    assert (facts["failure"]["code"], facts["versions"], facts["chunks"]) == (6104, None, [])


def test_the_same_id_in_two_sources(qedge: Invoke, ingested: Path, docs: Path, model: Path) -> None:  # noqa: ARG001
    """An id that two sources have needs --source-id; the message names them."""
    assert qedge("ingest", docs, "--source-id", "copy", "--model", model).exit_code == 0
    result = qedge("inspect", "notes.txt")
    assert result.exit_code == 2
    assert "club, copy" in result.stderr
    assert json.loads(qedge("inspect", "notes.txt", "--source-id", "copy", "--json").stdout)["source_id"] == "copy"


def test_inspect_shows_the_whole_line(qedge: Invoke, ingested: Path, docs: Path, model: Path) -> None:
    """Artefacts that are there are named, tokens summed, the beginning of the text shown; a failure has its remedy."""
    facts = json.loads(qedge("inspect", "notes.txt", "--json").stdout)
    assert facts["artifacts"] == {}
    assert facts["tokens"] == sum(chunk["token_count"] for chunk in facts["chunks"])
    assert facts["chunks"][0]["text"].startswith(facts["preview"])
    version = facts["versions"]["chunks"]
    folder = ArtifactFolder(default_root(ingested), "chunks")
    with closing(Database(ingested, read_only=True)) as opened:
        versions = StateStore(opened, "chunks").versions("club", "notes.txt")
    assert versions is not None
    path = folder.paths("club", "notes.txt", versions)["document_chunks"]
    assert path.name.endswith(f"-{version}.parquet")
    path.parent.mkdir(parents=True)
    path.touch()
    (found,) = json.loads(qedge("inspect", "notes.txt", "--json").stdout)["artifacts"].items()
    assert (found[0], Path(found[1]).resolve()) == ("document_chunks", path.resolve())
    (docs / "notes.txt").write_bytes(bytes(500))
    assert qedge("ingest", docs, "--source-id", "club", "--model", model).exit_code == 0
    lines = qedge("inspect", "notes.txt").stdout.splitlines()
    assert any(line.startswith("artefact of document_chunks ") and line.endswith(path.name) for line in lines)
    assert any(line.startswith("remedy ") and "content is what" in line for line in lines)
