"""The systemd units: what each must say, and that its command is one the program takes."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.samples.support import SAMPLES, parse

UNITS = SAMPLES / "systemd"
SERVICES = sorted(UNITS.glob("*.service"))
LONG_RUNNING = {"dagster-daemon", "dagster-webserver", "handbook-code"}


def read(path: Path) -> dict[str, dict[str, list[str]]]:
    """Section → key → values: a key may come several times, so `configparser` will not do."""
    unit: dict[str, dict[str, list[str]]] = {}
    for line in path.read_text("utf-8").splitlines():
        if section := re.fullmatch(r"\[(\w+)\]", line):
            entries = unit.setdefault(section[1], {})
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            entries.setdefault(key, []).append(value)
    return unit


def test_the_units() -> None:
    """One unit for each of Dagster's three processes, and a oneshot with its timer."""
    assert {path.stem for path in SERVICES} == {*LONG_RUNNING, "qedge-ingest"}
    assert [path.stem for path in UNITS.glob("*.timer")] == ["qedge-ingest"]


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.stem)
def test_a_service_is_confined(path: Path) -> None:
    """Its own user, nothing to gain, and nothing to write to but what is named."""
    service = read(path)["Service"]
    assert service["User"] != ["root"]
    for key, value in {"NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes"}.items():
        assert service[key] == [value]
    assert "StateDirectory" in service


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.stem)
def test_the_command_of_a_service(path: Path) -> None:
    """The program itself reads the command line."""
    (command,) = read(path)["Service"]["ExecStart"]
    command = command.replace("/etc/dagster/workspace.yaml", str(UNITS / "workspace.yaml"))
    name, _ = parse(shlex.split(command))
    expected = {"handbook-code": "grpc", "dagster-daemon": "run", "qedge-ingest": "ingest"}
    assert name == expected.get(path.stem, path.stem)


def test_stopping_lets_runs_end() -> None:
    """Runs are children of the code server: each gets the signal, and time to reach a boundary."""
    service = read(UNITS / "handbook-code.service")["Service"]
    assert service["KillMode"] == ["control-group"]
    assert service["KillSignal"] == ["SIGTERM"]
    assert int(service["TimeoutStopSec"][0]) >= 120


def test_dagster_processes_are_of_one_instance() -> None:
    """The same home and user; web interface and daemon find the code server where it listens."""
    services = {name: read(UNITS / f"{name}.service")["Service"] for name in LONG_RUNNING}
    assert {tuple(service["Environment"]) for service in services.values()} == {("DAGSTER_HOME=/var/lib/dagster",)}
    assert {tuple(service["User"]) for service in services.values()} == {("dagster",)}
    _, server = parse(shlex.split(services["handbook-code"]["ExecStart"][0]))
    (location,) = yaml.safe_load((UNITS / "workspace.yaml").read_text("utf-8"))["load_from"]
    assert location["grpc_server"] | {"host": server["host"], "port": server["port"]} == location["grpc_server"]


def test_a_suspended_run_is_no_failure() -> None:
    """75 and 130 are ends of the oneshot that the timer goes on from."""
    service = read(UNITS / "qedge-ingest.service")["Service"]
    assert service["Type"] == ["oneshot"]
    assert service["SuccessExitStatus"] == ["75 130"]
    _, options = parse(shlex.split(service["ExecStart"][0]))
    assert options["budget"] == "background"
    assert "OnUnitInactiveSec" in read(UNITS / "qedge-ingest.timer")["Timer"]


def test_systemd_itself_takes_the_units(tmp_path: Path) -> None:
    """Where systemd is there to ask, it finds no fault but that the programs are not installed; elsewhere the units
    have been read all the same, by the tests above."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return
    for path in [*SERVICES, *UNITS.glob("*.timer")]:
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", path.read_text("utf-8"), flags=re.MULTILINE)
        (tmp_path / path.name).write_text(text, "utf-8")
    done = subprocess.run(
        [analyze, "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
