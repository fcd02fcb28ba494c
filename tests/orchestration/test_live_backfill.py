"""Backfills as the UI launches them: GraphQL, daemon, run queue, and overlapping run workers."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from tests.orchestration.live.processes import live, wait_for
from tests.orchestration.support import STAGES
from tests.pipeline.support import write

NAMES = [f"{letter}.txt" for letter in "abcdefghijklm"]
SCATTERED = NAMES[::3]


def versions(instance: dg.DagsterInstance, stage: str) -> dict[str, str]:
    """The data version of the newest materialisation of each partition."""
    key = dg.AssetKey(["notes", stage])
    found: dict[str, str] = {}
    for record in instance.fetch_materializations(key, limit=1000, ascending=True).records:
        event = record.asset_materialization
        assert event is not None
        assert event.partition is not None
        assert event.tags is not None
        found[event.partition] = event.tags["dagster/data_version"]
    return found


@pytest.mark.long
def test_a_backfill_of_scattered_partitions(tmp_path: Path) -> None:
    """Five scattered partitions, unchanged ones among them: five runs, COMPLETED_SUCCESS, each partition with a version
    of its own, which unchanged ones had before. With one document that fails: COMPLETED_FAILED, and that
    partition is the one that failed."""
    write(tmp_path / "docs", {name: f"the text of {name}" for name in NAMES})
    with live(tmp_path, seconds_per_call="3") as (dagster, instance):
        instance.add_dynamic_partitions("notes/docs", NAMES)
        first = dagster.launch(
            "notes_ingest", {"ops": {"notes_ingest_documents": {"config": {"documents": SCATTERED[:2]}}}}
        )
        wait_for(lambda: (run := instance.get_run_by_id(first)) and run.is_success)
        before = {stage: versions(instance, stage) for stage in STAGES}
        backfill = dagster.finished_backfill(dagster.backfill(list(STAGES), SCATTERED))
        assert backfill["status"] == "COMPLETED_SUCCESS", backfill
        runs = [run for run in instance.get_runs() if run.run_id != first]
        assert len(runs) == len(SCATTERED)
        for stage in STAGES:
            found = versions(instance, stage)
            assert sorted(found) == SCATTERED
            assert len(set(found.values())) == len(SCATTERED)
            assert before[stage].items() <= found.items()
        assert len((tmp_path / "texts").read_text().splitlines()) == len(SCATTERED)

        write(tmp_path / "docs", {SCATTERED[2]: b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 8})
        last = dagster.backfill(list(STAGES), SCATTERED)
        backfill = dagster.finished_backfill(last)
        assert backfill["status"] == "COMPLETED_FAILED", backfill
        failed = {
            counts["assetKey"]["path"][-1]: counts["numPartitionsFailed"]
            for counts in backfill["assetBackfillData"]["assetBackfillStatuses"]
        }
        assert failed == dict.fromkeys(STAGES, 1)
        with_event = {
            event.partition
            for run in instance.get_runs(dg.RunsFilter(tags={"dagster/backfill": last}))
            for entry in instance.all_logs(run.run_id)
            if (event := entry.dagster_event) is not None and event.is_step_materialization
        }
        assert with_event == set(SCATTERED) - {SCATTERED[2]}
        observed = instance.fetch_observations(
            dg.AssetRecordsFilter(dg.AssetKey(["notes", "collection"]), asset_partitions=[SCATTERED[2]]), limit=1
        ).records
        assert "6104" in str(observed[0].event_log_entry)
