"""`qedge ui`: real services, their address, and their end."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from filelock import FileLock

from qedge_dagster.cli import main
from tests.cli.conftest import Invoke, finish, start
from tests.cli.test_process import _count

QUERY = """{
  assetNodes { assetKey { path } partitionStats { numPartitions numMaterialized } }
  runsOrError { ... on Runs { results { jobName status repositoryOrigin { repositoryLocationName } } } }
}"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(url: str) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - the address is that of our own server
        f"{url}/graphql", json.dumps({"query": QUERY}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        return json.load(answer)["data"]


def processes_of(home: Path) -> list[str]:
    """Command lines of all processes that work on a home: it is in their environment."""
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            if f"DAGSTER_HOME={home}".encode() in environment:
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:100])
        except OSError:  # it has ended, or is another user's
            continue
    return found


def stop(process: subprocess.Popen[str], number: signal.Signals) -> tuple[str, str]:
    process.send_signal(number)
    return process.communicate(timeout=90)


@pytest.fixture
def home(tmp_path: Path, docs: Path, model: Path, qedge: Invoke) -> Path:  # noqa: ARG001 - the current folder is its own
    """The home of `x.db`, with one run over the three documents."""
    args = ["ingest", docs, "--model", model, "--db", tmp_path / "x.db"]
    assert CliRunner().invoke(main, [str(arg) for arg in args]).exit_code == 0
    return tmp_path / "x.db.dagster"


@pytest.mark.long
def test_the_ui_shows_what_was_ingested(home: Path) -> None:
    """The address answers, with assets and partitions, and a run that belongs to the location; SIGTERM ends every
    process. The terminal got one line."""
    port = free_port()
    args = ["ui", "--db", home.with_suffix(""), "--port", port]
    # As a shell starts a background process: with SIGINT ignored, which Dagster then takes over for SIGTERM.
    with start(*args, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == f"http://127.0.0.1:{port} (Ctrl-C ends it; the log is {home}/ui.log)\n"
        data = ask(line.split()[0])
        assert processes_of(home)
        stdout, stderr = stop(process, signal.SIGTERM)
    assert (process.returncode, stdout, stderr) == (0, "", "")
    assert processes_of(home) == []
    stats = {node["assetKey"]["path"][-1]: node["partitionStats"] for node in data["assetNodes"]}
    assert stats["collection"] == {"numPartitions": 3, "numMaterialized": 3}
    (run,) = data["runsOrError"]["results"]
    assert (run["jobName"], run["status"]) == ("chunks_ingest", "SUCCESS")
    assert run["repositoryOrigin"] == {"repositoryLocationName": "qedge_dagster.orchestration.location"}


@pytest.mark.long
def test_the_sensor_keeps_the_index_fresh(home: Path, docs: Path) -> None:
    """A new document is ingested while the UI runs, a port that is taken is passed over, and --json says the address;
    SIGINT ends every process."""
    (docs / "new.txt").write_text("The ferry leaves at six.", "utf-8")
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 3000))
            taken.listen()
        except OSError:  # somebody else has it, which is as good
            pass
        with start("ui", "--db", home.with_suffix(""), "--json") as process:
            assert process.stdout is not None
            url = json.loads("".join(process.stdout.readline() for _ in range(3)))["url"]
            assert url != "http://127.0.0.1:3000"
            deadline = time.monotonic() + 120
            while len(ask(url)["runsOrError"]["results"]) < 2 or _newest(url) != "SUCCESS":
                assert time.monotonic() < deadline
                time.sleep(1)
            stop(process, signal.SIGINT)
    assert process.returncode == 0
    assert processes_of(home) == []
    found = finish("search", "ferry", "--db", home.with_suffix(""), "--mode", "keyword", "--json")
    assert [hit["document_id"] for hit in json.loads(found.stdout)] == ["new.txt"]
    log = (home / "ui.log").read_text("utf-8")
    assert "Dagster services" in log
    assert "ferry" not in log  # no text of a document


@pytest.mark.long
def test_a_run_is_cancelled_with_the_services(home: Path, docs: Path) -> None:
    """A run that the sensor has launched ends as cancelled, at a committed boundary, when `qedge ui` is told to end."""
    database = home.with_suffix("")
    for number in range(300):  # some minutes of work
        (docs / f"{number}.txt").write_text("\n".join(f"Line {line} of {number}." for line in range(2000)), "utf-8")
    begun = _count(database, "SELECT count(*) FROM qedge_ingest_document")
    with start("ui", "--db", database, "--port", free_port()) as process:
        deadline = time.monotonic() + 150
        while _count(database, "SELECT count(*) FROM qedge_ingest_document") < begun + 3:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        stop(process, signal.SIGTERM)
    assert processes_of(home) == []
    with closing(sqlite3.connect(database)) as connection:
        query = "SELECT outcome FROM qedge_ingest_run ORDER BY started_utc DESC LIMIT 1"
        assert connection.execute(query).fetchone() == ("cancelled",)
    with closing(sqlite3.connect(home / "history" / "runs.db")) as connection:
        query = "SELECT status FROM runs ORDER BY id DESC LIMIT 1"
        assert connection.execute(query).fetchone() == ("CANCELED",)


def _newest(url: str) -> str:
    return ask(url)["runsOrError"]["results"][0]["status"]


def test_a_signal_while_the_services_start(home: Path) -> None:
    """Ctrl-C before there is an address leaves nothing behind either."""
    with start("ui", "--db", home.with_suffix(""), "--port", free_port()) as process:
        deadline = time.monotonic() + 60
        while not (home / "ui.log").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        stdout, stderr = stop(process, signal.SIGINT)
    assert (process.returncode, stdout, stderr) == (0, "", "")
    assert processes_of(home) == []


def test_a_port_in_use(home: Path, qedge: Invoke) -> None:
    """A port that was asked for and is taken is wrong usage."""
    assert home.is_dir()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = qedge("ui", "--db", "x.db", "--port", port)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"port {port} of 127.0.0.1 cannot be used" in result.stderr


def test_nothing_ingested_yet(qedge: Invoke, ingested: Path) -> None:
    """Without a run of Dagster there is nothing to show: the error says what to do first."""
    assert ingested.exists()
    result = qedge("ui")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("qedge: 6002 CollectionNotConfigured: ")
    assert "qedge ingest PATH --db qedge.db" in result.stderr


def test_the_extra_is_missing(home: Path, qedge: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dagster-webserver, one line says how to install it."""
    assert home.is_dir()
    monkeypatch.setattr("qedge_dagster.cli.ui.find_spec", lambda _: None)
    result = qedge("ui", "--db", "x.db")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "pip install 'qedge-dagster[ui]'" in result.stderr


def test_a_damaged_database(home: Path, qedge: Invoke) -> None:
    """It is said before anything is started, rather than by nothing being shown."""
    home.with_suffix("").write_bytes(b"Dear diary, " * 1000)
    result = qedge("ui", "--db", "x.db")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("qedge: 6204 StateCorrupt: ")
    assert not (home / "ui.log").exists()


def test_a_home_has_one_ui(home: Path, qedge: Invoke) -> None:
    """While one is there, another ends at once and says so, whatever port it asks for."""
    with FileLock(home / "ui.lock"):
        result = qedge("ui", "--db", "x.db", "--port", free_port())
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"qedge: 6013 DagsterUnavailable: another `qedge ui` shows the Dagster home {home}")
    assert not (home / "ui.log").exists()


@pytest.mark.long
def test_killed(home: Path) -> None:
    """SIGKILL takes the services along, also where nobody is left to end them; the home is free for the next."""
    args = ["ui", "--db", home.with_suffix(""), "--port"]
    for _ in range(2):
        with start(*args, free_port()) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("http://")
            refused = finish(*args, free_port())
            assert (refused.returncode, refused.stderr.split(":")[1]) == (1, " 6013 DagsterUnavailable")
            process.send_signal(signal.SIGKILL)
            process.wait(60)
        deadline = time.monotonic() + 60
        while processes_of(home):
            assert time.monotonic() < deadline, processes_of(home)
            time.sleep(0.2)
