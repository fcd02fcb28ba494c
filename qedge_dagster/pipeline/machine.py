"""What the machine says of itself: memory, heat and power, as far as it tells.

Inside a container the limits are those of its control group, not of the machine: the tighter of the two counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from qedge_dagster.pipeline.throttle import Readings

__all__ = ["Machine"]

# Per cent of the last ten seconds in which some (or all) work stood still for want of memory.
_MODERATE = 10.0
_CRITICAL = 25.0
_LOW_BATTERY = 20  # per cent: where systems switch their battery saver on


class Machine:
    """Call it for `Readings`. `root` is where /proc and /sys are found."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._proc = root / "proc"
        self._sys = root / "sys"

    def __call__(self) -> Readings:
        return Readings(self._memory_pressure(), self._available_memory(), self._thermal(), self._low_power())

    def _available_memory(self) -> int | None:
        import psutil

        left = [int(psutil.virtual_memory().available)]
        for group in self._control_groups():
            with suppress(OSError, ValueError):
                left.append(_headroom(group))
        return max(0, min(left))

    def _memory_pressure(self) -> Literal["normal", "moderate", "critical"] | None:
        """By the kernel's pressure stall information, of the control group if it has its own."""
        files = [*(group / "memory.pressure" for group in self._control_groups()), self._proc / "pressure" / "memory"]
        for file in files:
            with suppress(OSError, ValueError, KeyError):
                shares = _stalled(file.read_text("ascii"))
                if shares["full"] >= _CRITICAL:
                    return "critical"
                return "moderate" if shares["some"] >= _MODERATE else "normal"
        return None

    def _thermal(self) -> Literal["nominal", "serious", "critical"] | None:
        """By the limits that the sensors themselves name."""
        import psutil

        if not hasattr(psutil, "sensors_temperatures"):  # on Linux and FreeBSD alone
            return None
        worst: Literal["nominal", "serious", "critical"] | None = None
        for sensors in psutil.sensors_temperatures().values():
            for sensor in sensors:
                high, critical = sensor.high or 0.0, sensor.critical or 0.0
                if 0 < critical <= sensor.current:
                    return "critical"
                if 0 < high <= sensor.current:
                    worst = "serious"
                elif high > 0 or critical > 0:
                    worst = worst or "nominal"
        return worst

    def _low_power(self) -> bool | None:
        with suppress(OSError):
            if (self._sys / "firmware" / "acpi" / "platform_profile").read_text("ascii").strip() == "low-power":
                return True
        import psutil

        battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
        if battery is None:
            return None
        plugged: bool | None = getattr(battery, "power_plugged", None)  # None where it does not say
        return None if plugged is None else not plugged and battery.percent <= _LOW_BATTERY

    def _control_groups(self) -> Iterator[Path]:
        """That of this process and those above it, of version 2 or, of version 1, the one for memory."""
        with suppress(OSError, UnicodeDecodeError):
            for line in (self._proc / "self" / "cgroup").read_text().splitlines():
                number, _, rest = line.partition(":")
                controllers, _, path = rest.partition(":")
                if number == "0" and not controllers:
                    root = self._sys / "fs" / "cgroup"
                elif "memory" in controllers.split(","):
                    root = self._sys / "fs" / "cgroup" / "memory"
                else:
                    continue
                group = root / path.lstrip("/")
                while root in group.parents:
                    yield group
                    group = group.parent
                yield root


def _headroom(group: Path) -> int:
    """Bytes left until the group's limit; files in the cache that nobody uses are given up before. Raises `OSError`,
    `ValueError` where the group has no limit."""
    version2 = (group / "memory.max").exists()
    limit = int((group / ("memory.max" if version2 else "memory.limit_in_bytes")).read_text())  # "max" is no number
    used = int((group / ("memory.current" if version2 else "memory.usage_in_bytes")).read_text())
    statistics = dict(line.split(maxsplit=1) for line in (group / "memory.stat").read_text().splitlines())
    return limit - used + int(statistics.get("inactive_file" if version2 else "total_inactive_file", 0))


def _stalled(text: str) -> dict[str, float]:
    """Of "some avg10=1.50 avg60=…", 1.5 under "some"; likewise "full"."""
    fields = (line.split() for line in text.splitlines() if line)
    return {name: float(average.removeprefix("avg10=")) for name, average, *_ in fields}
