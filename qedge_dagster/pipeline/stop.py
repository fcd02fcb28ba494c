"""The stop flag: set from a signal handler or another thread, read by the runner at each committed boundary, cleared
when the run has ended. And what the way from there to the end may take."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal

from qedge_dagster.errors import QedgeError

__all__ = ["StopBudget", "StopFlag", "StopReason", "StopRequest", "Stopped"]

StopReason = Literal["caller:stop", "lifecycle:stopping", "lifecycle:sleeping"]


_MAX_GRACE = 2.0


@dataclass(frozen=True, slots=True)
class StopBudget:
    """What the steps of a stop may take, in seconds: the way to the next committed boundary (at most 2), merging the
    full-text index, and writing the WAL into the database. Together they must fit `deadline`, which is what whoever
    stops the process allows before it kills it."""

    grace: float = 0.75
    merge: float = 2.0
    checkpoint: float = 1.0
    deadline: float = 5.0

    def __post_init__(self) -> None:
        steps = (self.grace, self.merge, self.checkpoint)
        if not all(seconds > 0 for seconds in (*steps, self.deadline)):
            raise QedgeError(6005, "the seconds of a stop must be positive")
        if self.grace > _MAX_GRACE:
            raise QedgeError(6005, f"a grace of {self.grace:g} s is more than {_MAX_GRACE:g} s")
        if sum(steps) > self.deadline:
            raise QedgeError(
                6005,
                f"grace, merge and checkpoint of a stop take {self.grace:g} + {self.merge:g} + {self.checkpoint:g} = "
                f"{sum(steps):g} s, which does not fit its deadline of {self.deadline:g} s",
            )


@dataclass(frozen=True, slots=True)
class StopRequest:
    """`suspended` says that the caller will go on some time; `cancelled` that a person or the system broke it off."""

    outcome: Literal["suspended", "cancelled"]
    reason: StopReason
    at: float = field(default_factory=time.monotonic)


class Stopped(Exception):
    """The run ends here, as asked."""

    def __init__(self, outcome: Literal["suspended", "cancelled"], reason: str) -> None:
        super().__init__(reason)
        self.outcome: Literal["suspended", "cancelled"] = outcome
        self.reason = reason


class StopFlag:
    """The first request is kept. A single assignment, so that a signal handler may make it."""

    def __init__(self) -> None:
        self.request: StopRequest | None = None

    def set(self, request: StopRequest) -> None:
        if self.request is None:
            self.request = request

    def check(self) -> None:
        """Raises `Stopped` if there was a request."""
        if self.request is not None:
            raise Stopped(self.request.outcome, self.request.reason)

    def clear(self) -> None:
        self.request = None
