"""The process that extracts, below the real command: what ends the command ends it too."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import DOCUMENTS, finish, start, write_docs
from tests.extractors.processes import endless_pdf, wait_until_gone, workers_of

pytestmark = pytest.mark.parametrize("engine", [["--no-dagster"], []], ids=["engine", "dagster"])


@pytest.fixture
def stuck(tmp_path: Path) -> Path:
    """A folder whose first document is never read to its end."""
    folder = write_docs(tmp_path / "docs")
    (folder / "a.pdf").write_bytes(endless_pdf())
    return folder


def _worker_of(process: subprocess.Popen[str]) -> int:
    deadline = time.monotonic() + 60
    while not (workers := workers_of(process.pid)):
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return workers[0]


def test_one_document_is_lost(engine: list[str], stuck: Path, model: Path, tmp_path: Path) -> None:
    """A document that takes too long fails with 6102, and those after it are indexed."""
    limit = ["--extraction-seconds", "1"]
    done = finish("ingest", *engine, stuck, "--db", tmp_path / "x.db", "--model", model, *limit, "--json")
    result = json.loads(done.stdout)
    assert (result["outcome"], result["documents_indexed"]) == ("completed", len(DOCUMENTS))
    (failed,) = [document for document in result["documents"] if document["failure"]]
    assert (failed["document_id"], failed["failure"]["code"]) == ("a.pdf", 6102)
    assert "took longer than 1 s" in failed["failure"]["message"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left(number: signal.Signals, engine: list[str], stuck: Path, model: Path, tmp_path: Path) -> None:
    """Ctrl-C, a second time as no boundary comes, and `kill -9`: each ends both processes."""
    with start("ingest", *engine, stuck, "--db", tmp_path / "x.db", "--model", model) as process:
        worker = _worker_of(process)
        process.send_signal(number)
        if number is signal.SIGINT:
            assert process.stderr is not None
            while "stopping at the next committed boundary" not in (line := process.stderr.readline()):
                assert line
            process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == (-number if number is signal.SIGKILL else 130)
    wait_until_gone(worker)


def test_ctrl_c_does_not_wait_for_the_document(engine: list[str], stuck: Path, model: Path, tmp_path: Path) -> None:
    """Ctrl-C does not reach the process that extracts, but its document is given up: the run is cancelled, long before
    its time is over, nothing is said of the document, and no process is left."""
    limit = ["--extraction-seconds", "600"]
    command = ["ingest", *engine, stuck, "--db", tmp_path / "x.db", "--model", model, *limit, "--json"]
    with start(*command, start_new_session=True) as process:
        worker = _worker_of(process)
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=60)
    result = json.loads(stdout)
    assert (process.returncode, result["outcome"]) == (130, "cancelled")
    assert not any(document["failure"] for document in result["documents"])
    wait_until_gone(worker)
