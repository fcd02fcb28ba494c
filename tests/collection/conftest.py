"""A small collection for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.collection.support import ROWS, build


@pytest.fixture
def path(tmp_path: Path) -> Path:
    build(tmp_path / "c.db", ROWS)
    return tmp_path / "c.db"
