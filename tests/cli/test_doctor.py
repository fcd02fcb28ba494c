"""`qedge doctor` and `qedge backup`, on their own and beside an ingestion in another process."""

from __future__ import annotations

import json
import signal
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest

from qedge_dagster.artifacts.files import ArtifactFolder, default_root
from qedge_dagster.collection.connection import Database
from qedge_dagster.errors import QedgeError
from qedge_dagster.pipeline.doctor import examine
from qedge_dagster.state import StageVersions
from tests.cli.conftest import Invoke, finish, start

COUNT = 600


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of several chunks each, no two alike."""
    folder = tmp_path_factory.mktemp("shelf")
    for number in range(COUNT):
        sections = (f"## Part {part}\n\n" + f"Boat {number} of row {part} lies here. " * 20 for part in range(4))
        (folder / f"{number:03}.md").write_text(f"# Boat {number}\n\n" + "\n\n".join(sections), "utf-8")
    return folder


def spoil(database: Path, *statements: str) -> None:
    with closing(Database(database)) as opened:
        for statement in statements:
            opened.connection.execute(statement)


def documents(database: Path) -> dict[str, set[str]]:
    """The keys of each document's chunks; none yet before the first run has begun."""
    found: dict[str, set[str]] = {}
    with suppress(QedgeError, apsw.Error), closing(Database(database, read_only=True)) as opened:
        for document_id, key in opened.connection.execute("SELECT document_id, key FROM chunks"):
            found.setdefault(document_id, set()).add(key)
    return found


def test_healthy(qedge: Invoke, ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """One line and exit code 0; neither the model nor the documents are needed."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    for option in ([], ["--repair"], ["--collection", "chunks"]):
        result = qedge("doctor", *option)
        assert (result.exit_code, result.stdout, result.stderr) == (0, "qedge.db (chunks): healthy\n", "")
    quick = qedge("doctor", "--quick")
    assert quick.exit_code == 0
    assert "were not read (quick)" in quick.stdout


def test_damage_repair_and_the_next_ingestion(qedge: Invoke, ingested: Path, docs: Path, model: Path) -> None:
    """1 as long as something is wrong, 0 when it is mended; what was lost, the next ingestion makes good."""
    keys = documents(ingested)
    spoil(ingested, "DELETE FROM chunks_vec WHERE rowid = 1", "DELETE FROM chunks_fts_docsize WHERE id = 2")
    found = qedge("doctor")
    assert found.exit_code == 1
    assert "chunks: 1 chunks without a vector\n    --repair: the vector is taken" in found.stdout
    assert found.stdout.endswith("qedge.db (chunks): 2 kinds of damage; `qedge doctor --repair` mends what it can\n")
    facts = json.loads(qedge("doctor", "--json").stdout)
    assert [(f["kind"], f["count"], f["mendable"]) for f in facts["left"]] == [
        ("vectors_missing", 1, True),
        ("full_text_missing", 1, True),
    ]
    assert (facts["healthy"], facts["done"], facts["collections"]) == (False, [], ["chunks"])
    repaired = qedge("doctor", "--repair")
    assert repaired.exit_code == 0
    assert "repaired:\n  chunks: the full-text index was built again" in repaired.stdout
    assert repaired.stdout.endswith("qedge.db (chunks): healthy now\n")
    assert documents(ingested) != keys
    status = json.loads(qedge("status", "--json").stdout)
    assert status["outstanding"]["documents_to_try_again"] == 1
    result = json.loads(qedge("ingest", docs, "--model", model, "--source-id", "club", "--json").stdout)
    assert (result["documents_indexed"], result["documents_skipped"]) == (1, 2)
    assert documents(ingested) == keys
    assert json.loads(qedge("doctor", "--json").stdout)["healthy"]


def test_what_only_a_backup_brings_back(qedge: Invoke, ingested: Path) -> None:
    """It is said, with or without --repair, and the exit code is 1."""
    with closing(Database(ingested)) as database:
        page = database.connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'chunks'").get
    content = bytearray(ingested.read_bytes())
    content[4096 * (page - 1) : 4096 * page] = b"\xff" * 4096
    ingested.write_bytes(content)
    for option in ([], ["--repair"]):
        result = qedge("doctor", *option)
        assert result.exit_code == 1
        assert "restore the file from a backup" in result.stdout
        assert "mends what it can" not in result.stdout
    assert qedge("backup", "copy.db").exit_code == 1


def test_artefacts_beside_the_database(qedge: Invoke, ingested: Path) -> None:
    """Those of no current version are found and deleted."""
    folder = ArtifactFolder(default_root(ingested), "chunks")
    old = folder.paths("club", "gone.md", StageVersions(*[bytes(16)] * 4))["document_chunks"]
    old.parent.mkdir(parents=True)
    old.touch()
    assert qedge("doctor").exit_code == 1
    assert qedge("doctor", "--repair").exit_code == 0
    assert not old.exists()


def test_wrong_usage_and_no_database(qedge: Invoke, ingested: Path) -> None:  # noqa: ARG001
    """--quick does not go with --repair; an unknown collection or file is 6002, another file 6204."""
    assert qedge("doctor", "--repair", "--quick").exit_code == 2
    assert "6002" in qedge("doctor", "--collection", "other").stderr
    assert "6002" in qedge("doctor", "--db", "none.db", "--repair").stderr
    Path("text.db").write_text("no database " * 200, "utf-8")
    assert "6204" in qedge("doctor", "--db", "text.db").stderr
    assert not Path("none.db").exists()


def test_backup(qedge: Invoke, ingested: Path) -> None:
    """The copy passes the doctor and is never overwritten by accident; --json tells its size."""
    result = json.loads(qedge("backup", "copy.db", "--json").stdout)
    assert result == {"database": "qedge.db", "target": "copy.db", "bytes": Path("copy.db").stat().st_size}
    assert documents(Path("copy.db")) == documents(ingested)
    assert qedge("doctor", "--db", "copy.db").exit_code == 0
    refused = qedge("backup", "copy.db")
    assert refused.exit_code == 2
    assert "copy.db exists. Use --overwrite" in refused.stderr
    assert qedge("backup", "copy.db", "--overwrite").exit_code == 0
    restored = qedge("search", "bow line", "--mode", "keyword", "--db", "copy.db", "--json")
    assert json.loads(restored.stdout)[0]["document_id"] == "boats/mooring.md"


def test_beside_an_ingestion(shelf: Path, model: Path, tmp_path: Path) -> None:
    """While another process writes: copies are sound and hold whole documents only, a look finds nothing, a repair is
    refused; and the ingestion is none the worse for it."""
    db = tmp_path / "qedge.db"
    copies: list[Path] = []
    with start("ingest", "--no-dagster", shelf, "--db", db, "--model", model, "--quiet") as process:
        while not documents(db):
            time.sleep(0.01)
        process.send_signal(signal.SIGSTOP)  # so that it does not come to its end meanwhile
        try:
            repair = finish("doctor", "--repair", "--db", db)
            look = finish("doctor", "--db", db)
        finally:
            process.send_signal(signal.SIGCONT)
        while process.poll() is None and len(copies) < 3:
            before = len(documents(db))
            copies.append(tmp_path / f"copy{len(copies)}.db")
            assert finish("backup", copies[-1], "--db", db).returncode == 0
            assert len(documents(copies[-1])) >= before
        assert process.wait(120) == 0
    assert repair.returncode == 1
    assert "6008 RunAlreadyActive" in repair.stderr
    assert look.returncode == 0
    assert "is active" in look.stdout
    whole = documents(db)
    assert len(whole) == COUNT
    assert len(documents(copies[0])) < COUNT
    for copy in copies:
        assert examine(copy).found == ()
        copied = documents(copy)
        assert copied
        assert copied == {document_id: whole[document_id] for document_id in copied}
    assert examine(db).found == ()
