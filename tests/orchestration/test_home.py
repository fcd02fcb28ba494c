"""The settings of an instance, and where its event log lies."""

from __future__ import annotations

import logging
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._cli.utils import get_possibly_temporary_instance_for_cli
from dagster._core.instance.ref import InstanceRef

import qedge_dagster
from qedge_dagster.orchestration.event_log import BatchedEventLogStorage
from qedge_dagster.orchestration.home import prepare_home

ROOT = Path(qedge_dagster.__file__).parents[1]


def log_folder(instance: dg.DagsterInstance) -> Path:
    """Where the event log of the instance lies; ours it must be, and usable."""
    storage = instance.event_log_storage
    assert isinstance(storage, BatchedEventLogStorage)
    instance.report_runless_asset_event(dg.AssetObservation("a", partition="p"))
    assert len(instance.fetch_observations(dg.AssetKey("a"), limit=9).records) == 1
    return Path(storage.path_for_shard("index")).parent


def test_the_settings_of_the_repository_are_those_of_a_home(tmp_path: Path) -> None:
    """The dagster.yaml of the repository's root is the one that a new home gets."""
    prepare_home(tmp_path / "new" / "home")
    assert (tmp_path / "new" / "home" / "dagster.yaml").read_bytes() == (ROOT / "dagster.yaml").read_bytes()


def test_a_home_is_left_as_its_owner_made_it(tmp_path: Path) -> None:
    """Settings that exist are not touched, and nothing else is left in the folder."""
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: true}\n")
    prepare_home(tmp_path)
    assert (tmp_path / "dagster.yaml").read_text() == "telemetry: {enabled: true}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["dagster.yaml"]


@pytest.mark.parametrize("error", [FileExistsError, PermissionError])
def test_where_a_link_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError]) -> None:
    """A process that was faster keeps its file; a file system without links gets the settings all the same."""

    def link(_draft: str, target: Path) -> None:
        if error is FileExistsError:
            target.write_text("of the other\n")
        raise error

    monkeypatch.setattr("os.link", link)
    prepare_home(tmp_path)
    ours = (ROOT / "dagster.yaml").read_text()
    assert (tmp_path / "dagster.yaml").read_text() == ("of the other\n" if error is FileExistsError else ours)
    assert [path.name for path in tmp_path.iterdir()] == ["dagster.yaml"]


def test_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With DAGSTER_HOME, the event log lies where Dagster's default does."""
    prepare_home(tmp_path)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with dg.DagsterInstance.get() as instance:
        assert log_folder(instance) == tmp_path / "history" / "runs"


def test_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `dagster dev` does in a folder with settings and without DAGSTER_HOME: the event log is in the temporary
    home, for the processes that it hands its instance to as well."""
    (tmp_path / "dagster.yaml").write_bytes((ROOT / "dagster.yaml").read_bytes())
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    with get_possibly_temporary_instance_for_cli("dagster dev", logger=logging.getLogger("test")) as instance:
        folder = log_folder(instance)
        assert folder == Path(instance.root_directory, "history", "runs")
        ref = dg.deserialize_value(dg.serialize_value(instance.get_ref()), InstanceRef)
        with dg.DagsterInstance.from_ref(ref) as handed:
            assert handed.fetch_observations(dg.AssetKey("a"), limit=9).records
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dagster.yaml"]


@pytest.mark.parametrize("base_dir", ["logs", {"env": "QEDGE_TEST_LOGS"}])
def test_a_folder_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base_dir: object) -> None:
    """`base_dir` is taken as Dagster's own storage takes it: relative to the working directory, or from a variable."""
    settings = yaml.safe_load((ROOT / "dagster.yaml").read_text())
    settings["event_log_storage"]["config"] = {"base_dir": base_dir}
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "dagster.yaml").write_text(yaml.safe_dump(settings))
    monkeypatch.setenv("QEDGE_TEST_LOGS", str(tmp_path / "logs"))
    monkeypatch.chdir(tmp_path)
    with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        assert log_folder(instance) == tmp_path / "logs"
