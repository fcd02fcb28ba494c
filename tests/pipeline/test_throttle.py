"""Readings of the machine, and what is decided by them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from qedge_dagster.pipeline.machine import Machine
from qedge_dagster.pipeline.throttle import Decision, Readings, Throttle, decide

_MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("readings", "decision"),
    [
        (Readings(), Decision(32)),
        (Readings("normal", 500 * _MIB, "nominal", False), Decision(32)),
        (Readings("critical", 0, "critical", True), Decision(32, 0, "memory:critical", True)),
        (Readings("moderate", 48 * _MIB - 1, "critical", True), Decision(32, 0, "memory:floor", True)),
        (Readings("moderate", 48 * _MIB, "critical", True), Decision(32, 0, "thermal:critical", True)),
        (Readings("moderate", 48 * _MIB, "serious", True), Decision(16, 0.25, "thermal:serious")),
        (Readings("moderate", 48 * _MIB, "nominal", True), Decision(16, 0, "memory:moderate")),
        (Readings("normal", 96 * _MIB - 1, None, True), Decision(16, 0, "memory:warn")),
        (Readings("normal", 96 * _MIB, None, True), Decision(4, 0.1, "power:low")),
        (Readings(None, None, None, True), Decision(4, 0.1, "power:low")),
    ],
)
def test_the_first_signal_decides(readings: Readings, decision: Decision) -> None:
    """In the order of the table, at its bounds; what is unknown is no signal."""
    assert decide(readings, 32) == decision


@pytest.mark.parametrize("readings", [Readings(thermal="serious"), Readings(low_power=True)])
def test_a_batch_of_one_stays(readings: Readings) -> None:
    """Half of one text is no batch."""
    assert decide(readings, 1).batch == 1


def test_no_more_than_two_readings_a_second() -> None:
    """The monitor is asked when half a second has passed, and the newest reason there was is kept."""
    times = iter((0.0, 0.1, 0.49, 0.5))
    readings = iter((Readings(low_power=True), Readings()))
    throttle = Throttle(32, lambda: next(readings), clock=lambda: next(times))
    assert [throttle.decision().batch for _ in range(4)] == [4, 4, 4, 32]
    assert throttle.last_reason == "power:low"


def test_fixed() -> None:
    """Without a monitor there is one decision."""
    throttle = Throttle(8)
    assert (throttle.decision(), throttle.last_reason) == (Decision(8), None)


# the machine


def _root(tmp_path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.fixture(autouse=True)
def _a_machine_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1000 * _MIB))
    monkeypatch.setattr(psutil, "sensors_battery", lambda: None, raising=False)
    monkeypatch.setattr(psutil, "sensors_temperatures", dict, raising=False)


def test_nothing_to_be_read(tmp_path: Path) -> None:
    """Where there is no /proc and /sys, what is not to be had is None."""
    assert Machine(tmp_path)() == Readings(None, 1000 * _MIB, None, None)


def test_limits_of_the_control_group(tmp_path: Path) -> None:
    """The tightest limit above the process counts, and cached files that nobody uses count as free."""
    group = "sys/fs/cgroup/a.slice"
    root = _root(
        tmp_path,
        {
            "proc/self/cgroup": "0::/a.slice/b.service\n",
            f"{group}/b.service/memory.max": "max\n",
            f"{group}/b.service/memory.current": f"{300 * _MIB}\n",
            f"{group}/b.service/memory.stat": "anon 1\ninactive_file 5\n",
            f"{group}/memory.max": f"{400 * _MIB}\n",
            f"{group}/memory.current": f"{360 * _MIB}\n",
            f"{group}/memory.stat": f"anon 1\ninactive_file {20 * _MIB}\n",
        },
    )
    assert Machine(root)().available_memory == 60 * _MIB


def test_limits_of_the_first_version(tmp_path: Path) -> None:
    """Control groups of version 1 have other names for the same."""
    group = "sys/fs/cgroup/memory/docker/x"
    root = _root(
        tmp_path,
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n",
            f"{group}/memory.limit_in_bytes": f"{100 * _MIB}\n",
            f"{group}/memory.usage_in_bytes": f"{70 * _MIB}\n",
            f"{group}/memory.stat": f"total_inactive_file {10 * _MIB}\n",
        },
    )
    assert Machine(root)().available_memory == 40 * _MIB


@pytest.mark.parametrize(
    ("some", "full", "level"),
    [
        ("0.00", "0.00", "normal"),
        ("9.99", "9.99", "normal"),
        ("10.00", "0.00", "moderate"),
        ("40.00", "25.00", "critical"),
    ],
)
def test_pressure(tmp_path: Path, some: str, full: str, level: str) -> None:
    """By the time that work stood still for want of memory."""
    text = f"some avg10={some} avg60=0.00 avg300=0.00 total=1\nfull avg10={full} avg60=0.00 avg300=0.00 total=1\n"
    assert Machine(_root(tmp_path, {"proc/pressure/memory": text}))().memory_pressure == level


def test_pressure_of_the_control_group(tmp_path: Path) -> None:
    """The group's own comes before that of the machine; what cannot be understood is unknown."""
    calm = "some avg10=0.00 avg60=0\nfull avg10=0.00 avg60=0\n"
    files = {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.pressure": calm.replace("0.00", "90.00"),
        "proc/pressure/memory": calm,
    }
    assert Machine(_root(tmp_path, files))().memory_pressure == "critical"
    files = {name: "nonsense" for name in files if name != "proc/self/cgroup"}
    assert Machine(_root(tmp_path, files))().memory_pressure is None


@pytest.mark.parametrize(
    ("sensors", "level"),
    [
        ([(50.0, 80.0, 90.0), (40.0, None, None)], "nominal"),
        ([(85.0, 80.0, 90.0)], "serious"),
        ([(85.0, 80.0, 90.0), (95.0, 80.0, 90.0)], "critical"),
        ([(50.0, 0.0, -273.0), (50.0, None, None)], None),
    ],
)
def test_heat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sensors: list[tuple[float, float, float]], level: str | None
) -> None:
    """By the limits of the sensors; one without any says nothing."""
    named = [SimpleNamespace(current=current, high=high, critical=critical) for current, high, critical in sensors]
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: {"cpu": named}, raising=False)
    assert Machine(tmp_path)().thermal == level


@pytest.mark.parametrize(
    ("percent", "plugged", "low"), [(15, False, True), (80, False, False), (15, True, False), (15, None, None)]
)
def test_battery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, percent: int, plugged: bool | None, low: bool | None
) -> None:
    """Low is a battery in use that is nearly empty."""
    battery = SimpleNamespace(percent=percent, power_plugged=plugged)
    monkeypatch.setattr(psutil, "sensors_battery", lambda: battery, raising=False)
    assert Machine(tmp_path)().low_power is low


def test_power_profile(tmp_path: Path) -> None:
    """The profile that a person has chosen counts, too."""
    assert Machine(_root(tmp_path, {"sys/firmware/acpi/platform_profile": "low-power\n"}))().low_power is True
