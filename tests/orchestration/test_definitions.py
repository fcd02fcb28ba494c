"""The code location of this repository, as Dagster loads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dagster as dg
import yaml
from dagster._core.instance.config import dagster_instance_config

import qedge_dagster
from assets.definitions import defs

ROOT = Path(qedge_dagster.__file__).parents[1]


def test_the_asset_graph() -> None:
    """Every asset with what it is made of. A change of the graph is a change of this test."""
    graph = defs.resolve_asset_graph()
    assert {
        key.to_user_string(): sorted(parent.to_user_string() for parent in graph.get(key).parent_keys)
        for key in graph.get_all_asset_keys()
    } == {
        "documents/source_documents": [],
        "documents/extracted_documents": ["documents/source_documents"],
        "documents/document_chunks": ["documents/extracted_documents"],
        "documents/chunk_embeddings": ["documents/document_chunks"],
        "documents/collection": ["documents/chunk_embeddings"],
    }
    assert graph.external_asset_keys == {dg.AssetKey(["documents", "source_documents"])}
    partitions = {graph.get(key).partitions_def.name for key in graph.get_all_asset_keys()}  # type: ignore[union-attr]
    assert partitions == {"documents/documents"}


def test_jobs_sensor_schedule_and_checks() -> None:
    """What runs by itself and what may be launched, by name. The checks' job is of the checks alone."""
    repository = defs.get_repository_def()
    jobs = {job.name for job in repository.get_all_jobs() if not job.name.startswith("__")}
    assert jobs == {f"documents_{what}" for what in ("ingest", "prune", "rebuild", "checks")}
    assert [sensor.name for sensor in repository.sensor_defs] == ["documents_reindex"]
    assert [(s.name, s.cron_schedule) for s in repository.schedule_defs] == [("documents_full_pass", "0 3 * * *")]
    checks = {key.name for key in defs.resolve_asset_graph().asset_check_keys}
    assert checks == {"no_failed_documents", "nothing_stale", "index_integrity"}


def test_one_op_for_all_stages() -> None:
    """The stages are one op that cannot be split, has no retry policy, and shares a pool with the jobs."""
    repository = defs.get_repository_def()
    assets = next(a for a in repository.asset_graph.assets_defs if a.is_executable and len(a.keys) == 4)
    assert not assets.can_subset
    assert assets.op.retry_policy is None
    pools = {
        node.definition.pool
        for job in ("ingest", "prune", "rebuild")
        for node in repository.get_job(f"documents_{job}").nodes
    }  # type: ignore[union-attr]
    assert pools | {assets.op.pool} == {"qedge_ingestion"}


def test_the_instance_settings(tmp_path: Path) -> None:
    """dagster.yaml is valid, sends no telemetry, and lets one run at a time write."""
    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    settings, _ = dagster_instance_config(str(tmp_path))
    assert settings["telemetry"] == {"enabled": False}
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.global_op_concurrency_default_limit == 1
        assert instance.run_monitoring_settings["free_slots_after_run_end_seconds"] > 0


def test_the_workspace_loads_from_the_root() -> None:
    """The module that workspace.yaml names holds the definitions, found from the repository root alone."""
    modules = [entry["python_module"] for entry in yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]]
    assert modules == [{"module_name": "assets.definitions", "working_directory": "."}]
    code = "from assets.definitions import defs; print(defs.get_repository_def().has_job('documents_ingest'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
