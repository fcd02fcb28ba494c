"""An instance and a code location for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from qedge_dagster.orchestration import BudgetConfig
from tests.orchestration.support import Location


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    home = tmp_path / "home"
    home.mkdir()
    with dg.instance_for_test(temp_dir=str(home)) as opened:
        yield opened


@pytest.fixture
def location(tmp_path: Path, instance: dg.DagsterInstance) -> Location:
    return Location(tmp_path, instance, BudgetConfig())
