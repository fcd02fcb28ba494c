"""No test of this room may reach for a network: LlamaIndex brings libraries that download data on first use."""

from __future__ import annotations

import socket
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever connects to another machine fails its test."""
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        assert self.family == socket.AF_UNIX or address[0] in ("127.0.0.1", "::1"), f"connects to {address}"
        real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)
