"""The code locations of this repository, as Dagster's own command loads them, and a run of the sample project."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.samples.support import ROOT, SAMPLES

PROJECT = SAMPLES / "project"

#: The job, and the asset that is made of its collection, in a process in which the project is loaded from its YAML.
RUN = """
import dagster as dg
from handbook.definitions import defs
repository = defs().get_repository_def()
with dg.DagsterInstance.get() as instance:
    assert repository.get_job("handbook_ingest").execute_in_process(instance=instance).success
    print(sorted(instance.get_dynamic_partitions("handbook/handbook")))
    job = defs().resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=instance, asset_selection=[dg.AssetKey("chunks_per_document")])
    (made,) = result.asset_materializations_for_node("chunks_per_document")
    print(made.metadata["documents"].value, made.metadata["chunks"].value > 3)
"""


def environment(home: Path) -> dict[str, str]:
    """With an instance of its own, and this checkout before any other that is installed."""
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text("utf-8"), "utf-8")
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "DAGSTER_HOME": str(home),
        "PYTHONPATH": os.pathsep.join(paths),
        "HANDBOOK_DATABASE": str(home / "handbook.db"),
    }


@pytest.mark.parametrize("folder", [ROOT, PROJECT], ids=["repository", "project"])
def test_dagster_validates_the_definitions(folder: Path, tmp_path: Path) -> None:
    """`dagster definitions validate`, in the folder, with no argument."""
    done = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate"],
        cwd=folder,
        env=environment(tmp_path / "home"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All code locations passed validation" in done.stdout + done.stderr


def test_the_project_ingests_and_reports(tmp_path: Path) -> None:
    """The job of the YAML indexes the project's documents with the default model; the asset below it counts them."""
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=PROJECT, env=environment(tmp_path / "home"), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["['arriving.md', 'contacts.txt', 'leaving.md']", "3 True"]
