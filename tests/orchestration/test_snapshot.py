"""The whole asset graph of this repository's code location, held against a reviewed file: a change of it is to be seen.

A test run never writes the file. To see what it would hold: python -m tests.orchestration.test_snapshot
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dagster as dg

from assets.definitions import defs

_GOLDEN = Path(__file__).parents[1] / "golden" / "definitions.json"


def test_the_definitions() -> None:
    """Assets, checks, jobs, sensors and schedules are those of the file."""
    assert snapshot(defs) == json.loads(_GOLDEN.read_text("utf-8"))


def snapshot(definitions: dg.Definitions) -> dict[str, Any]:
    repository = definitions.get_repository_def()
    graph = repository.asset_graph
    jobs = (job for job in repository.get_all_jobs() if not job.name.startswith("__"))
    return {
        "assets": {
            key.to_user_string(): _asset(graph, key)
            for key in sorted(graph.get_all_asset_keys(), key=lambda key: key.to_user_string())
        },
        "checks": sorted(f"{key.asset_key.to_user_string()}: {key.name}" for key in graph.asset_check_keys),
        "jobs": {job.name: _job(job) for job in sorted(jobs, key=lambda job: job.name)},
        "sensors": {
            sensor.name: {
                "jobs": [target.job_name for target in sensor.targets],
                "minimum_interval_seconds": sensor.minimum_interval_seconds,
                "default_status": sensor.default_status.value,
            }
            for sensor in repository.sensor_defs
        },
        "schedules": {
            schedule.name: {
                "job": schedule.job_name,
                "cron_schedule": schedule.cron_schedule,
                "execution_timezone": schedule.execution_timezone,
                "default_status": schedule.default_status.value,
            }
            for schedule in repository.schedule_defs
        },
        "resources": sorted(definitions.resources or {}),
    }


def _asset(graph: Any, key: dg.AssetKey) -> dict[str, Any]:
    node = graph.get(key)
    return {
        "deps": sorted(parent.to_user_string() for parent in node.parent_keys),
        "description": node.description,
        "group": node.group_name,
        "kinds": sorted(node.kinds),
        "tags": dict(sorted(node.tags.items())),
        "partitions": node.partitions_def and f"{type(node.partitions_def).__name__} {node.partitions_def.name}",
        "code_version": node.code_version,
        "executable": node.is_executable,
        "op": node.assets_def.op.name if node.is_executable else None,
        "pools": sorted(node.pools or ()),
    }


def _job(job: dg.JobDefinition) -> dict[str, Any]:
    return {
        "description": job.description,
        "executor": job.executor_def.name,
        "ops": {
            node.name: {"pool": node.definition.pool, "config": _fields(node.definition.config_schema.config_type)}
            for node in job.nodes
            if isinstance(node.definition, dg.OpDefinition)
        },
    }


def _fields(config_type: Any) -> dict[str, Any]:
    """Field → its default, and the fields below it."""
    found: dict[str, Any] = {}
    for name, field in sorted(getattr(config_type, "fields", {}).items()):
        inner = getattr(field.config_type, "inner_type", field.config_type)
        found[name] = _fields(inner) or (field.default_value if field.default_provided else "required")
    return found


if __name__ == "__main__":
    print(json.dumps(snapshot(defs), indent=2, ensure_ascii=False))
