"""The stop flag: set from a signal handler or another thread, read by the runner at each committed boundary."""

from __future__ import annotations

import threading
from typing import Literal

__all__ = ["StopFlag", "StopReason"]

StopReason = Literal["caller:stop", "lifecycle:stopping", "lifecycle:sleeping"]


class StopFlag:
    """The first reason given is kept."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._reason: StopReason | None = None

    def request(self, reason: StopReason = "caller:stop") -> None:
        if self._reason is None:
            self._reason = reason
        self._event.set()

    @property
    def reason(self) -> StopReason | None:
        return self._reason if self._event.is_set() else None

    def clear(self) -> None:
        self._event.clear()
        self._reason = None
