"""A store in place of a folder, under Dagster."""

from __future__ import annotations

import zipfile
from pathlib import Path

import dagster as dg
import fsspec
import pytest

from qedge_dagster import FsspecSource
from qedge_dagster.orchestration import BudgetConfig
from tests.orchestration import support
from tests.orchestration.support import Location
from tests.orchestration.test_component import OwnComponent, loaded
from tests.orchestration.test_sensor import documents, run, tick


def write_archive(path: Path, files: dict[str, str], year: int = 2024) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), text)


def test_the_sensor_goes_by_checksums(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive with new times and the same content asks for nothing; an edit that keeps the size asks for its
    document, and one that is gone for its removal."""
    archive = tmp_path / "docs.zip"
    write_archive(archive, {"a.txt": "alpha", "b.txt": "beta"})
    source = FsspecSource(f"zip://::{archive}", source_id="docs")
    monkeypatch.setattr(support, "FolderSource", lambda *_, **__: source)
    location = Location(tmp_path, instance, BudgetConfig())
    request = tick(location)
    assert documents(request) == ["a.txt", "b.txt"]
    assert run(location, request).success

    write_archive(archive, {"a.txt": "alpha", "b.txt": "beta"}, year=2025)
    assert tick(location) == "Nothing is known to be outstanding: 2 documents have their recorded size and time."
    write_archive(archive, {"a.txt": "alpah", "b.txt": "beta"})
    request = tick(location)
    assert documents(request) == ["a.txt"]
    assert run(location, request).success
    write_archive(archive, {"a.txt": "alpah"})
    request = tick(location)
    assert documents(request) == ["b.txt"]
    assert run(location, request).success
    assert location.problems() == []


@pytest.fixture
def secret_name(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("QEDGE_TEST_SECRET", "a-secret-word")
    return "QEDGE_TEST_SECRET"


def test_a_component_over_a_store(secret_name: str) -> None:
    """`url` and `storage_options` make the source, a secret comes from the environment, and stays out of what Dagster
    is told of the resource."""
    filesystem = fsspec.filesystem("memory", word="a-secret-word")
    filesystem.pipe_file("/component/a.txt", b"alpha")
    attributes = {
        "source": {"url": "memory://component", "storage_options": {"word": f"{{{{ env.{secret_name} }}}}"}},
        "database": "notes.db",
    }
    with loaded(attributes, OwnComponent) as (_, definitions):
        dg.Definitions.validate_loadable(definitions)
        (name,) = {
            part.name
            for key in definitions.resolve_asset_graph().get_all_asset_keys()
            if (part := definitions.resolve_asset_graph().get(key).partitions_def) is not None
        }
        assert name == "chunks/memory://component"
        with dg.instance_for_test() as instance:
            result = definitions.resolve_job_def("chunks_ingest").execute_in_process(instance=instance)
            assert result.success
            assert instance.get_dynamic_partitions(name) == ["a.txt"]
        assert "a-secret-word" not in str([vars(resource) for resource in (definitions.resources or {}).values()])
