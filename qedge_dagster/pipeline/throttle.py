"""How much of the machine a run takes: readings → a decision, before each document and each window."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Decision", "Readings", "Throttle", "ThrottleReason", "decide"]

ThrottleReason = Literal[
    "memory:critical",
    "memory:floor",
    "thermal:critical",
    "thermal:serious",
    "memory:moderate",
    "memory:warn",
    "power:low",
]

_MIB = 1024 * 1024
_FLOOR = 48 * _MIB
_WARN = 96 * _MIB
_LOW_POWER_BATCH = 4
_MIN_BATCH = 1
# A pass over unchanged documents asks thousands of times a second.
_SECONDS_BETWEEN_READINGS = 0.5


@dataclass(frozen=True, slots=True)
class Readings:
    """Of the machine, or of the part of it that this process may use; None where a reading is not to be had."""

    memory_pressure: Literal["normal", "moderate", "critical"] | None = None
    available_memory: int | None = None  # bytes
    thermal: Literal["nominal", "serious", "critical"] | None = None
    low_power: bool | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """At most `batch` texts in the next window, after `delay` seconds; with `pause`, none until the reason is gone."""

    batch: int
    delay: float = 0.0
    reason: ThrottleReason | None = None
    pause: bool = False


def decide(readings: Readings, batch: int) -> Decision:
    """The first signal that is on decides; what is unknown is none."""
    available = readings.available_memory
    if readings.memory_pressure == "critical":
        return Decision(batch, reason="memory:critical", pause=True)
    if available is not None and available < _FLOOR:
        return Decision(batch, reason="memory:floor", pause=True)
    if readings.thermal == "critical":
        return Decision(batch, reason="thermal:critical", pause=True)
    half = max(_MIN_BATCH, batch // 2)
    if readings.thermal == "serious":
        return Decision(half, delay=0.25, reason="thermal:serious")
    if readings.memory_pressure == "moderate":
        return Decision(half, reason="memory:moderate")
    if available is not None and available < _WARN:
        return Decision(half, reason="memory:warn")
    if readings.low_power:
        return Decision(min(batch, _LOW_POWER_BATCH), delay=0.1, reason="power:low")
    return Decision(batch)


class Throttle:
    """`monitor` is asked at most twice a second; without one the throttle is fixed. `waits`: in a pause the run waits;
    else it is suspended. `last_reason` is the newest there was."""

    def __init__(
        self,
        batch: int,
        monitor: Callable[[], Readings] | None = None,
        *,
        waits: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.waits = waits
        self._monitor = monitor
        self._clock = clock
        self._batch = batch
        self._decision = Decision(batch)
        self._read_at: float | None = None
        self.last_reason: ThrottleReason | None = None

    def decision(self) -> Decision:
        if self._monitor is None:
            return self._decision
        now = self._clock()
        if self._read_at is None or now - self._read_at >= _SECONDS_BETWEEN_READINGS:
            self._read_at = now
            self._decision = decide(self._monitor(), self._batch)
            self.last_reason = self._decision.reason or self.last_reason
        return self._decision
