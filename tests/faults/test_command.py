"""Faults of the storage, as `qedge` tells them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import apsw
import dagster as dg
import pytest

from qedge_dagster.cli.home import dagster_home
from qedge_dagster.errors import QedgeError
from qedge_dagster.sources import FolderSource
from tests.cli.conftest import ROOT, Invoke, finish, start

_DAMAGED_FROM = 8192


@pytest.fixture
def few(tmp_path: Path) -> Path:
    folder = tmp_path / "few"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number:02}.txt").write_text(f"Boat {number} lies at berth {number * 7}. " * 20, "utf-8")
    return folder


def run_with(setup: str, *args: object) -> subprocess.CompletedProcess[str]:
    """`qedge` in a process of its own, after some statements of Python."""
    code = f"import sys\n{setup}\nfrom qedge_dagster.cli import main\nmain({[str(arg) for arg in args]!r})"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_damage_in_the_middle(qedge: Invoke, ingested: Path, docs: Path, model: Path) -> None:
    """6204 and exit code 1, with what to do; not a completed run with failed documents."""
    whole = ingested.read_bytes()
    ingested.write_bytes(whole[:_DAMAGED_FROM] + bytes(len(whole) - _DAMAGED_FROM))
    (docs / "notes.txt").write_text("Changed.", "utf-8")
    result = qedge("ingest", docs, "--source-id", "club", "--model", model)
    assert result.exit_code == 1
    assert "6204 StateCorrupt" in result.stderr
    assert "backup" in result.stderr
    assert "completed" not in result.output


@pytest.mark.parametrize("options", [["--no-dagster"], []], ids=["engine", "dagster"])
def test_a_full_disk(options: list[str], few: Path, model: Path, tmp_path: Path) -> None:
    """The run ends with what is the matter in words, keeps what was committed, and goes on when there is room."""
    database = tmp_path / "q.db"
    full = (
        "from tests.faults.vfs import FULL, OK, faulty_files\n"
        "context = faulty_files(lambda number, kind: FULL if number > 600 and kind == 'write' else OK)\n"
        "context.__enter__()"
    )
    result = run_with(full, "ingest", few, "--db", database, "--model", model, "--json", *options)
    assert result.returncode == 1
    assert "the disk is full" in result.stderr
    assert "Make room" in result.stderr
    assert "Traceback" not in result.stderr
    outcome = json.loads(result.stdout)
    assert outcome["outcome"] == "failed"
    assert outcome["failure"]["code"] == 6205
    kept = outcome["documents_indexed"]
    assert kept > 0
    result = finish("ingest", few, "--db", database, "--model", model, "--json", "--no-dagster")
    assert json.loads(result.stdout)["documents_skipped"] == kept
    assert json.loads(result.stdout)["documents_indexed"] == 40 - kept


def test_a_full_event_log(few: Path, model: Path, tmp_path: Path) -> None:
    """When Dagster cannot write its history, the run fails without its SQL on the terminal, is recorded as failed, and
    the next one goes on."""
    database = tmp_path / "q.db"
    small = (
        "from sqlalchemy import Engine, event\n"
        "@event.listens_for(Engine, 'connect')\n"
        "def limit(connection, _record):\n    connection.execute('PRAGMA max_page_count = 90')"
    )
    result = run_with(small, "ingest", few, "--db", database, "--model", model)
    assert result.returncode == 1
    assert "6013 DagsterUnavailable" in result.stderr
    assert "is full" in result.stderr
    for internal in ("INSERT", "SQL:", "Exception", "Traceback", "sqlalche.me"):
        assert internal not in result.stderr
    status = json.loads(finish("status", "--db", database, "--json").stdout)
    assert status["last_run"]["outcome"] == "failed"
    assert 0 < status["last_run"]["documents_indexed"] < 40
    result = finish("ingest", few, "--db", database, "--model", model, "--json")
    assert json.loads(result.stdout)["documents_skipped"] == status["last_run"]["documents_indexed"]


def test_a_database_that_is_deleted(few: Path, model: Path, tmp_path: Path) -> None:
    """A run whose database is removed under it fails, rather than complete into a file that is nowhere."""
    database = tmp_path / "q.db"
    deleted = (
        "from pathlib import Path\n"
        "from qedge_dagster.collection.writer import CollectionWriter as W\n"
        "add = W.add\n"
        f"def gone(*args):\n    add(*args)\n    Path({str(database)!r}).unlink(missing_ok=True)\n"
        "W.add = gone"
    )
    result = run_with(deleted, "ingest", few, "--db", database, "--model", model, "--no-dagster")
    assert result.returncode == 1
    assert "6205" in result.stderr
    assert "deleted, moved or replaced" in result.stderr
    assert finish("ingest", few, "--db", database, "--model", model, "--no-dagster").returncode == 0


def test_a_folder_that_is_moved_away(few: Path, model: Path, tmp_path: Path) -> None:
    """6051 as soon as it is gone; what was indexed stays, and nothing is pruned."""
    database, other = tmp_path / "q.db", few.with_name("other")
    ingest = ("ingest", few, "--db", database, "--model", model, "--no-dagster")
    assert finish(*ingest).returncode == 0
    (few / "05.txt").write_text("Changed.", "utf-8")
    moved = (
        "from pathlib import Path\n"
        "from qedge_dagster.collection.writer import CollectionWriter as W\n"
        "add = W.add\n"
        f"def move(*args):\n    add(*args)\n    Path({str(few)!r}).rename({str(other)!r})\n"
        "W.add = move"
    )
    result = run_with(moved, *ingest)
    assert result.returncode == 1
    assert "6051 SourceUnavailable" in result.stderr
    status = json.loads(finish("status", "--db", database, "--json").stdout)
    assert status["documents"] == 40


def test_a_folder_that_is_moved_before_its_end_is_seen(few: Path) -> None:
    """The same when the last document of the listing had come already."""
    items = FolderSource(few).items()
    assert len(list(islice(items, 40))) == 40
    few.rename(few.with_name("elsewhere"))
    with pytest.raises(QedgeError) as caught:
        next(items)
    assert caught.value.code == 6051


def test_a_database_that_another_program_writes_to(few: Path, model: Path, tmp_path: Path) -> None:
    """6205 when its transaction outlasts the wait, with what to do; afterwards the run goes through."""
    database = tmp_path / "q.db"
    ingest = ("ingest", few, "--db", database, "--model", model, "--no-dagster")
    assert finish(*ingest).returncode == 0
    (few / "05.txt").write_text("Changed.", "utf-8")
    with closing(apsw.Connection(str(database))) as other:
        other.execute("BEGIN IMMEDIATE")
        result = finish(*ingest)
        other.execute("ROLLBACK")
    assert result.returncode == 1
    assert "6205 CheckpointWriteFailed: another program holds" in result.stderr
    assert finish(*ingest).returncode == 0


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that any user may write to, as whoever is root may write to everything."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def _as_nobody(action: Callable[[], str]) -> str:
    """What `action` returns in a process without the rights of root."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:
            os.setuid(65534)
        try:
            os.write(writer, action().encode())
        except BaseException as error:
            os.write(writer, repr(error).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as stream:
        told = stream.read()
    os.waitpid(child, 0)
    return told


def test_a_read_only_database(open_folder: Path) -> None:
    """6205 names the file. What a reader leaves beside it is no hindrance once the database may be written to."""
    from qedge_dagster.collection.connection import Database
    from qedge_dagster.errors import QedgeError

    path = open_folder / "q.db"

    def write() -> str:
        try:
            with closing(Database(path)) as database:
                database.enable_wal()
                database.connection.execute("CREATE TABLE IF NOT EXISTS t (x); INSERT INTO t VALUES (1)")
        except QedgeError as error:
            return str(error)
        return "written"

    def read() -> str:
        path.chmod(0o444)
        with closing(Database(path, read_only=True)) as database:
            return str(database.connection.execute("SELECT count(*) FROM t").get)

    assert _as_nobody(write) == "written"
    assert _as_nobody(read) == "1"
    refused = _as_nobody(write)
    assert refused.startswith("6205 CheckpointWriteFailed: ")
    assert "q.db is read-only" in refused

    def mend() -> str:
        path.chmod(0o644)
        return write()

    assert _as_nobody(mend) == "written"


def test_a_killed_command_is_ended_by_the_next(few: Path, many: Path, model: Path, tmp_path: Path) -> None:
    """Dagster's run of it is failed at once; `qedge status` tells what it had committed."""
    database = tmp_path / "q.db"
    with start("ingest", many, "--db", database, "--model", model, "--source-id", "s") as process:
        while not _indexed(database):
            time.sleep(0.1)
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    status = json.loads(finish("status", "--db", database, "--json").stdout)
    [killed] = status["unfinished_runs"]
    assert killed["documents_indexed"] == status["documents"] > 0
    assert killed["chunks_added"] == status["chunks"]
    home = dagster_home(database)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        assert [run.status.value for run in instance.get_runs()] == ["STARTED"]
    assert finish("ingest", few, "--db", database, "--model", model, "--source-id", "s").returncode == 0
    with dg.DagsterInstance.from_config(str(home)) as instance:
        assert [run.status.value for run in instance.get_runs()] == ["SUCCESS", "FAILURE"]
    assert not list((home / "qedge").glob(".run-*"))


def _indexed(database: Path) -> bool:
    if not database.exists() or not database.stat().st_size:
        return False
    status = finish("status", "--db", database, "--json")
    return status.returncode == 0 and json.loads(status.stdout)["documents"] > 0
