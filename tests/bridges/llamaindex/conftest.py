"""No test of this room may reach for a network: LlamaIndex brings libraries that download data on first use."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from qedge_dagster.bridges.llamaindex import QedgeVectorStore
from tests.bridges.llamaindex.support import NODES


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever connects to another machine fails its test."""
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        assert self.family == socket.AF_UNIX or address[0] in ("127.0.0.1", "::1"), f"connects to {address}"
        real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.db"


@pytest.fixture
def store(path: Path) -> QedgeVectorStore:
    """Four nodes of three documents, one of which is of no document."""
    made = QedgeVectorStore(path, "axes")
    assert made.add(NODES) == ["boat", "cart", "club", "lone"]
    return made
