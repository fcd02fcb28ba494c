"""The program as a process: signals, pipes, terminals, and what start-up loads."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.cli.conftest import DOCUMENTS, finish, start

HOW_TO_GO_ON = "qedge: suspended (budget:documents): run the same command again to go on\n"


def _until(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _count(database: Path, query: str) -> int:
    try:
        with apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY) as connection:
            connection.set_busy_timeout(10_000)
            return connection.execute(query).get
    except (apsw.CantOpenError, apsw.SQLError):  # not made yet
        return 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_at_a_boundary(number: signal.Signals, many: Path, model: Path, tmp_path: Path) -> None:
    """The first signal: exit code 130, a cancelled run on record, whole documents only, and how to go on."""
    database = tmp_path / "x.db"
    args = ["ingest", "--no-dagster", many, "--db", database, "--model", model, "--json"]
    with start(*args) as process:
        _until(lambda: _count(database, "SELECT count(*) FROM qedge_ingest_document"), process)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    result = json.loads(stdout)
    assert (process.returncode, result["outcome"]) == (130, "cancelled")
    assert "run the same command again to go on" in stderr
    assert "Traceback" not in stderr
    done = _count(database, "SELECT count(*) FROM qedge_ingest_document")
    assert 0 < done == result["documents_indexed"] < 2000
    assert _count(database, "SELECT count(*) FROM chunks") == done
    assert _count(database, "SELECT count(*) FROM qedge_ingest_run WHERE outcome = 'cancelled'") == 1


def test_a_second_ctrl_c_leaves_at_once(model: Path, tmp_path: Path) -> None:
    """Asked twice, the program does not wait for the boundary; the database is whole."""
    folder, database = tmp_path / "docs", tmp_path / "x.db"
    folder.mkdir()
    # One document that takes long to cut: no boundary comes before the second signal.
    (folder / "long.txt").write_text("".join(f"Boat {n} has berth {n * 7}. " for n in range(100_000)), "utf-8")
    with start("ingest", "--no-dagster", folder, "--db", database, "--model", model) as process:
        assert process.stderr is not None
        _until(lambda: _count(database, "SELECT count(*) FROM qedge_ingest_run"), process)
        process.send_signal(signal.SIGINT)
        assert "stopping at the next committed boundary" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, "")
    assert stderr == "qedge: left at once; what was committed is kept, run the same command again to go on\n"
    assert _count(database, "SELECT count(*) FROM qedge_ingest_run WHERE finished_utc IS NULL") == 1
    assert _count(database, "SELECT count(*) FROM chunks") == 0


def test_two_runs_at_once(many: Path, model: Path, tmp_path: Path) -> None:
    """The second run of a source exits with 1 and 6008 and names the first, which goes on."""
    database = tmp_path / "x.db"
    args = ["ingest", "--no-dagster", many, "--db", database, "--model", model, "--json"]
    with start(*args) as first:
        _until(lambda: _count(database, "SELECT count(*) FROM qedge_ingest_document"), first)
        second = finish(*args)
        assert first.poll() is None
        first.send_signal(signal.SIGTERM)
        stdout, _ = first.communicate(timeout=60)
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr.startswith("qedge: 6008 RunAlreadyActive: ")
    assert json.loads(stdout)["run_id"] in second.stderr


def test_a_reader_that_goes_away_is_no_error(many: Path, model: Path, tmp_path: Path) -> None:
    """`qedge … | head -1` is no error, and the exit code is the command's own."""
    database = tmp_path / "x.db"
    read, write = os.pipe()
    os.close(read)
    args = ["ingest", "--no-dagster", many, "--db", database, "--model", model, "--max-documents", 5, "--json"]
    result = finish(*args, stdout=write)
    assert (result.returncode, result.stderr) == (75, HOW_TO_GO_ON)
    result = finish("search", "boat", "--db", database, "--mode", "keyword", stdout=write)
    os.close(write)
    assert (result.returncode, result.stderr) == (0, "")


def test_errors_to_a_closed_stderr(tmp_path: Path) -> None:
    """An error that nobody can read still has its exit code."""
    read, write = os.pipe()
    os.close(read)
    result = finish("status", "--db", tmp_path / "none.db", stderr=write)
    os.close(write)
    assert (result.returncode, result.stdout) == (1, "")


def _on_terminal(*args: object, columns: int = 90, **environment: str) -> tuple[int, str]:
    """Exit code, and what reached a terminal that stderr is connected to."""
    ours, theirs = pty.openpty()
    os.set_inheritable(theirs, True)
    size = {"COLUMNS": str(columns), "LINES": "24", "TERM": "xterm", **environment}
    with start(*args, stdout=subprocess.DEVNULL, stderr=theirs, env_changes=size) as process:
        os.close(theirs)
        shown = b""
        while True:
            ready, _, _ = select.select([ours], [], [], 60)
            try:
                part = os.read(ours, 65536) if ready else b""
            except OSError:  # Linux: the other end was closed
                part = b""
            if not part:
                break
            shown += part
        process.wait(timeout=60)
    os.close(ours)
    return process.returncode, shown.decode("utf-8")


def test_progress_on_a_terminal(many: Path, model: Path, tmp_path: Path) -> None:
    """Counts, rate and the current document, redrawn in place; no percentage, and the cursor comes back."""
    code, shown = _on_terminal(
        "ingest", "--no-dagster", many, "--db", tmp_path / "x.db", "--model", model, "--max-documents", 100, "--json"
    )
    assert code == 75
    assert "documents (" in shown
    assert " indexed, " in shown
    assert "documents/s" in shown
    assert ".txt" in shown
    assert "%" not in shown
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l") >= 0
    assert shown.count("documents (") <= 100


def test_no_progress_when_quiet(many: Path, model: Path, tmp_path: Path) -> None:
    """--quiet leaves only how to go on."""
    _, shown = _on_terminal(
        "ingest", "--no-dagster", many, "--db", tmp_path / "x.db", "--model", model, "--max-documents", 50, "--quiet"
    )
    assert shown == HOW_TO_GO_ON.replace("\n", "\r\n")


HEAVY = ["numpy", "tokenizers", "onnxruntime", "rich", "dagster", "pandas", "pyarrow", "pdfminer", "docx2txt"]


@pytest.mark.parametrize(
    ("args", "allowed"),
    [
        (["--help"], []),
        (["ingest", "--help"], []),
        (["ui", "--help"], []),
        (["status"], []),
        (["status", "--json"], []),
        (["inspect", "notes.txt"], ["numpy"]),
        (["search", "coffee", "--mode", "keyword"], ["numpy"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_start_up_is_light(args: list[str], allowed: list[str], template: Path, tmp_path: Path) -> None:
    """A command imports only what it needs."""
    database = tmp_path / "x.db"
    database.write_bytes(template.read_bytes())
    result = finish(*args, env_changes={"PYTHONPROFILEIMPORTTIME": "1", "QEDGE_DB": str(database)})
    assert result.returncode == 0
    imported = {line.rsplit("|", 1)[-1].strip() for line in result.stderr.splitlines() if "import time:" in line}
    assert "qedge_dagster.cli" in imported
    assert sorted(imported & set(HEAVY)) == allowed


def test_the_three_documents(template: Path) -> None:
    """The template database, which these tests copy, holds what they think."""
    assert _count(template, "SELECT count(*) FROM qedge_ingest_document WHERE status = 'indexed'") == len(DOCUMENTS)
