"""The event log that writes a document's events at once, held against Dagster's own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import ASSET_EVENTS

from qedge_dagster.orchestration import BudgetConfig
from qedge_dagster.orchestration.event_log import BatchedEventLogStorage
from tests.orchestration.event_log import rows
from tests.orchestration.support import BATCHED, STAGES, Location
from tests.orchestration.test_events import stale
from tests.pipeline.support import write

FRESH = dict.fromkeys(STAGES, "FRESH")
ASSET_TYPES = {event_type.value for event_type in ASSET_EVENTS}
ELF = b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 8


@contextmanager
def opened(root: Path, overrides: dict[str, Any]) -> Generator[Location, None, None]:
    with dg.instance_for_test(temp_dir=str(root / "home"), overrides=overrides) as instance:
        yield Location(root, instance, BudgetConfig())


def plain(value: Any, runs: list[str]) -> Any:
    """Of what Dagster has serialised, all but times, and the name of a run as its number."""
    if isinstance(value, dict):
        return {key: plain(part, runs) for key, part in value.items() if key != "timestamp"}
    if isinstance(value, list):
        return [plain(part, runs) for part in value]
    if isinstance(value, str) and value in runs:
        return runs.index(value)
    return 0.0 if isinstance(value, float) else value


def contents(location: Location) -> dict[str, list[tuple[Any, ...]]]:
    """What an instance's event log holds, in a form that compares; of events that are no asset's, their kind alone."""
    root, runs = str(location.root), [run.run_id for run in reversed(location.instance.get_runs())]
    events = location.root / "home" / "history" / "runs"
    found: dict[str, list[tuple[Any, ...]]] = {}
    for number, name in enumerate(["index", *runs]):
        logged = rows(
            events / f"{name}.db",
            "SELECT id, run_id, dagster_event_type, step_key, asset_key, partition, event FROM event_logs ORDER BY id",
        )
        found[f"events {number}"] = [
            (
                *key,
                runs.index(run),
                kind,
                plain(json.loads(event.replace(root, "")), runs) if kind in ASSET_TYPES else None,
            )
            for *key, run, kind, event in (
                (i, step, asset, part, run, kind, event) for i, run, kind, step, asset, part, event in logged
            )
        ]
    index = events / "index.db"
    found["assets"] = [
        (key, plain(json.loads(last.replace(root, "")), runs) if last else None, runs.index(run) if run else None)
        for key, last, run in rows(
            index, "SELECT asset_key, last_materialization, last_run_id FROM asset_keys ORDER BY asset_key"
        )
    ]
    found["tags"] = rows(index, "SELECT event_id, asset_key, key, value FROM asset_event_tags ORDER BY 1, 2, 3")
    found["partitions"] = rows(index, "SELECT partitions_def_name, partition FROM dynamic_partitions ORDER BY 1, 2")
    found["checks"] = rows(
        index,
        "SELECT asset_key, check_name, execution_status, evaluation_event_storage_id FROM asset_check_executions"
        " ORDER BY id",
    )
    return found


def work(location: Location) -> None:
    """New, broken, edited, vanished and unchanged documents, with and without a selection of partitions."""
    write(location.folder, {"a.txt": "alpha", "b.txt": "beta", "c.txt": ELF})
    location.run()
    write(location.folder, {"a.txt": "alpha, edited"})
    location.run(documents=["a.txt"])
    (location.folder / "b.txt").unlink()
    assert location.run_range("a.txt", "c.txt").success


def status_of(location: Location, partition: str) -> dict[str, str]:
    return {stage: status.value for stage, status in stale(location, partition).items()}


def test_the_same_rows_as_the_default(tmp_path: Path, empty_home: Path) -> None:
    """The same work leaves the same events, assets, tags, partitions and checks in either storage, id by id, and
    nothing stale."""
    found: list[dict[str, list[tuple[Any, ...]]]] = []
    for name, overrides in (("default", {}), ("batched", BATCHED)):
        shutil.copytree(empty_home, tmp_path / name / "home")
        with opened(tmp_path / name, overrides) as location:
            assert isinstance(location.instance.event_log_storage, BatchedEventLogStorage) == (name == "batched")
            work(location)
            found.append(contents(location))
            assert status_of(location, "a.txt") == FRESH
    default, batched = found
    assert len(default["tags"]) > 20
    for part, expected in default.items():
        assert batched[part] == expected, part


def test_a_home_goes_from_one_storage_to_the_other_and_back(tmp_path: Path, empty_home: Path) -> None:
    """Each goes on where the other stopped: nothing of the history is lost, and what is fresh stays so."""
    shutil.copytree(empty_home, tmp_path / "home")
    total = 0
    for number, overrides in enumerate(({}, BATCHED, {})):
        with opened(tmp_path, overrides) as location:
            if number:
                assert status_of(location, "a.txt") == FRESH
            write(location.folder, {"a.txt": f"alpha {number}"})
            assert location.run().success
            total += 1
            assert status_of(location, "a.txt") == FRESH
            key = location.target.key("collection")
            assert len(location.instance.fetch_materializations(key, limit=100).records) == total
            assert len(location.instance.get_runs()) == total


def test_pointers_are_true_ids(location: Location) -> None:
    """Each stage points at the id, in the index, of the event that its input was made by in the same run."""
    write(location.folder, {"a.txt": "alpha", "b.txt": "beta"})
    location.run()
    before = ["source_documents", *STAGES]
    index = location.root / "home" / "history" / "runs" / "index.db"
    ids = {
        (json.loads(asset)[-1], partition): event_id
        for event_id, asset, partition in rows(
            index, "SELECT id, asset_key, partition FROM event_logs WHERE partition IS NOT NULL ORDER BY id"
        )
    }
    for name in ("a.txt", "b.txt"):
        for stage, source in zip(STAGES, before, strict=False):
            pointer = location.materialization(stage, name).tags[f"dagster/input_event_pointer/notes/{source}"]
            assert int(pointer) == ids[source, name]


def test_with_batches_of_dagsters_own(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Dagster is told to store its planned events in batches, a run for partitions is as without it."""
    monkeypatch.setenv("DAGSTER_EVENT_BATCH_SIZE", "10")
    write(location.folder, {"a.txt": "alpha", "b.txt": "beta"})
    location.run()
    run = location.run_range("a.txt", "b.txt")
    assert run.success
    planned = {dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED}
    assert len(location.instance.all_logs(run.run_id, of_type=planned)) == 8
    assert len(location.events(run.run_id)) == 10


def test_a_run_is_deleted(location: Location) -> None:
    """Its events go, those of other runs stay, and the next run is as any other."""
    write(location.folder, {"a.txt": "alpha"})
    first = location.run().run_id
    write(location.folder, {"a.txt": "alpha, edited"})
    second = location.run().run_id
    location.instance.delete_run(first)
    assert location.instance.all_logs(first) == []
    assert len(location.events(second)) == 5
    records = location.instance.fetch_materializations(location.target.key("collection"), limit=9).records
    assert [record.run_id for record in records] == [second]
    write(location.folder, {"a.txt": "alpha, edited again"})
    assert location.run().success
    assert status_of(location, "a.txt") == FRESH


def test_a_closed_run_holds_no_file(location: Location) -> None:
    """After more runs than engines are kept, no file of the event log is open: SQLite drops the journal beside a file
    when its last connection is closed."""
    folder = location.root / "home" / "history" / "runs"
    for number in range(12):
        write(location.folder, {"a.txt": f"text {number}"})
        assert location.run().success
    assert len(list(folder.glob("*.db"))) > 12
    assert list(folder.glob("*-wal")) == []
    assert all(len(location.events(run.run_id)) == 5 for run in location.instance.get_runs())
