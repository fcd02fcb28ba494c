"""The stop flag: set from a signal handler or another thread, read by the runner at each committed boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["StopFlag", "StopReason", "StopRequest"]

StopReason = Literal["caller:stop", "lifecycle:stopping", "lifecycle:sleeping"]


@dataclass(frozen=True, slots=True)
class StopRequest:
    """`suspended` says that the caller will go on some time; `cancelled` that a person or the system broke it off."""

    outcome: Literal["suspended", "cancelled"]
    reason: StopReason


class StopFlag:
    """The first request is kept. A single assignment, so that a signal handler may make it."""

    def __init__(self) -> None:
        self.request: StopRequest | None = None

    def set(self, request: StopRequest) -> None:
        if self.request is None:
            self.request = request

    def clear(self) -> None:
        self.request = None
