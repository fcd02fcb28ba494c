"""An instance and a code location for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from qedge_dagster.orchestration import BudgetConfig
from qedge_dagster.orchestration.event_log import BatchedEventLogStorage
from tests.orchestration.support import BATCHED, Location


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of an instance that nothing has happened in: to set them up takes longer than many a run."""
    home = tmp_path_factory.mktemp("home")
    with dg.instance_for_test(temp_dir=str(home)) as opened:
        opened.get_runs_count()
        opened.get_dynamic_partitions("none")
    return home


@pytest.fixture
def instance(tmp_path: Path, empty_home: Path) -> Iterator[dg.DagsterInstance]:
    home = shutil.copytree(empty_home, tmp_path / "home")
    with dg.instance_for_test(temp_dir=str(home), overrides=BATCHED) as opened:
        yield opened


@pytest.fixture
def location(tmp_path: Path, instance: dg.DagsterInstance) -> Location:
    return Location(tmp_path, instance, BudgetConfig())


@pytest.fixture
def storage(instance: dg.DagsterInstance) -> BatchedEventLogStorage:
    found = instance.event_log_storage
    assert isinstance(found, BatchedEventLogStorage)
    return found
