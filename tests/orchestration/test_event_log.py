"""The event log that writes a document's events at once, held against Dagster's own."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import ASSET_EVENTS
from dagster._core.storage.event_log import SqliteEventLogStorage

import qedge_dagster
from qedge_dagster.orchestration import BudgetConfig
from qedge_dagster.orchestration.event_log import BatchedEventLogStorage
from tests.orchestration.support import BATCHED, STAGES, Location
from tests.orchestration.test_events import stale
from tests.pipeline.support import write

ROOT = Path(qedge_dagster.__file__).parents[1]
FRESH = dict.fromkeys(STAGES, "FRESH")
ASSET_TYPES = {event_type.value for event_type in ASSET_EVENTS}
ELF = b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 8


@contextmanager
def opened(root: Path, overrides: dict[str, Any]) -> Generator[Location, None, None]:
    with dg.instance_for_test(temp_dir=str(root / "home"), overrides=overrides) as instance:
        yield Location(root, instance, BudgetConfig())


@pytest.fixture
def storage(instance: dg.DagsterInstance) -> BatchedEventLogStorage:
    found = instance.event_log_storage
    assert isinstance(found, BatchedEventLogStorage)
    return found


def rows(path: str | Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def observe(instance: dg.DagsterInstance, partition: str) -> None:
    instance.report_runless_asset_event(
        dg.AssetObservation("a", partition=partition, tags={"dagster/data_version": partition})
    )


def observed(instance: dg.DagsterInstance) -> list[str | None]:
    records = instance.fetch_observations(dg.AssetKey("a"), limit=1000, ascending=True).records
    return [record.partition_key for record in records]


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


def test_what_a_batch_stored_is_read_within_it(instance: dg.DagsterInstance, storage: BatchedEventLogStorage) -> None:
    """The latest id of a partition is that of the batch, the same as is read after it."""
    key, kind = dg.AssetKey("a"), dg.DagsterEventType.ASSET_OBSERVATION
    observe(instance, "p")
    observe(instance, "q")
    old = instance.get_latest_storage_id_by_partition(key, kind, {"p", "q"})
    with storage.batch():
        assert instance.get_latest_storage_id_by_partition(key, kind, {"p", "q"}) == old
        observe(instance, "p")
        within = instance.get_latest_storage_id_by_partition(key, kind, {"p"})
        assert within["p"] > old["q"]
        assert instance.get_latest_storage_id_by_partition(key, kind, {"p", "q"}) == {**old, **within}
        assert instance.get_latest_storage_id_by_partition(key, kind) == {**old, **within}
        instance.add_dynamic_partitions("names", ["x"])
        assert instance.has_dynamic_partition("names", "x")
    assert instance.get_latest_storage_id_by_partition(key, kind, {"p", "q"}) == {**old, **within}


def test_a_failed_batch_leaves_nothing(instance: dg.DagsterInstance, storage: BatchedEventLogStorage) -> None:
    """What a batch stored before it failed is in no file; the log works on, and takes the ids again."""
    observe(instance, "first")

    def fail() -> None:
        with storage.batch():
            observe(instance, "lost")
            instance.add_dynamic_partitions("names", ["lost"])
            raise RuntimeError("as told")

    with pytest.raises(RuntimeError, match="as told"):
        fail()
    assert observed(instance) == ["first"]
    assert instance.get_dynamic_partitions("names") == []
    for name in ("index", ""):
        assert len(rows(storage.path_for_shard(name), "SELECT id FROM event_logs")) == 1
    assert len(rows(storage.path_for_shard("index"), "SELECT * FROM asset_event_tags")) == 1
    with storage.batch():
        observe(instance, "second")
    assert observed(instance) == ["first", "second"]


def test_a_write_that_failed_cannot_be_passed_over(
    instance: dg.DagsterInstance, storage: BatchedEventLogStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that goes on after a failed write would store half an event: it stores nothing, and says so."""

    def refuse(*_: object) -> None:
        raise OSError("as told")

    monkeypatch.setattr(storage, "_store_asset_event", refuse)

    def go_on() -> None:
        with storage.batch(), suppress(OSError):
            observe(instance, "half")

    with pytest.raises(dg.DagsterInvariantViolationError, match="rolled back"):
        go_on()
    monkeypatch.undo()
    assert rows(storage.path_for_shard(""), "SELECT id FROM event_logs") == []
    assert observed(instance) == []


def test_a_failed_run_of_the_op(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that cannot be stored fails the run, and of its document there is no event; what came before stays."""
    write(location.folder, {"a.txt": "alpha", "b.txt": "beta"})
    storage = location.instance.event_log_storage
    store: Callable[..., None] = storage._store_asset_event_tags  # type: ignore[attr-defined]

    def fails(connection: object, events: list[dg.EventLogEntry], event_ids: list[int]) -> None:
        stored = events[0].get_dagster_event()
        if stored.partition == "b.txt" and "chunk_embeddings" in str(stored.asset_key):
            raise OSError("as told")
        store(connection, events, event_ids)

    monkeypatch.setattr(storage, "_store_asset_event_tags", fails)
    run = location.run()
    assert not run.success
    assert {key for _, _, key in location.events(run.run_id)} == {"a.txt"}


def test_batches_spare_the_checkpoint(location: Location, storage: BatchedEventLogStorage) -> None:
    """While batches follow one another the index keeps its WAL, others can write to it, and at the end it is gone."""
    write(location.folder, {"a.txt": "alpha"})
    entry = location.instance.all_logs(location.run().run_id)[0]
    wal = location.root / "home" / "history" / "runs" / "index.db-wal"
    assert not wal.exists()
    with storage.batches():
        storage.store_event_batch([entry])
        assert wal.stat().st_size > 0
        with closing(sqlite3.connect(wal.with_name("index.db"), timeout=0)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            other.execute("BEGIN IMMEDIATE")
        assert wal.stat().st_size == 0
    assert not wal.exists()


def test_another_thread_is_no_part_of_a_batch(instance: dg.DagsterInstance, storage: BatchedEventLogStorage) -> None:
    """It waits, and what it stores is not rolled back with the batch."""
    thread = threading.Thread(target=observe, args=(instance, "other"))

    def fail() -> None:
        with storage.batch():
            observe(instance, "lost")
            thread.start()
            raise RuntimeError("as told")

    with pytest.raises(RuntimeError, match="as told"):
        fail()
    thread.join()
    assert observed(instance) == ["other"]


def test_events_stored_as_a_list(location: Location, storage: BatchedEventLogStorage) -> None:
    """Dagster's own batches are one: the events of a deleted run, stored again, are all there or none is."""
    write(location.folder, {"a.txt": "alpha"})
    run_id = location.run().run_id
    entries = location.instance.all_logs(run_id)
    storage.delete_events(run_id)
    with pytest.raises(AttributeError):
        storage.store_event_batch([*entries, "no event"])  # type: ignore[list-item]
    assert location.instance.all_logs(run_id) == []
    storage.store_event_batch(entries)
    assert location.instance.all_logs(run_id) == entries


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


def test_a_reader_sees_whole_documents(location: Location) -> None:
    """Who reads the index during a run finds the five events of a document, or none."""
    write(location.folder, {f"{number:02}.txt": f"text {number}" for number in range(25)})
    index = location.root / "home" / "history" / "runs" / "index.db"
    seen: set[int] = set()
    done = threading.Event()

    def read() -> None:
        counts = "SELECT count(*) FROM event_logs WHERE partition IS NOT NULL GROUP BY partition"
        finished = False
        while not finished:
            finished = done.is_set()  # then once more
            seen.update(count for (count,) in rows(index, counts))

    reader = threading.Thread(target=read)
    reader.start()
    assert location.run().success
    done.set()
    reader.join()
    assert seen == {5}


def test_readers_wait_for_nobody(instance: dg.DagsterInstance, storage: BatchedEventLogStorage) -> None:
    """Another process, with either storage, reads while a batch is open: what was there before it."""
    observe(instance, "before")
    with closing_log(Path(storage.path_for_shard("index")).parent) as other, storage.batch():
        observe(instance, "within")
        assert other.get_latest_storage_id_by_partition(
            dg.AssetKey("a"), dg.DagsterEventType.ASSET_OBSERVATION
        ).keys() == {"before"}
    assert observed(instance) == ["before", "within"]


@contextmanager
def closing_log(folder: Path) -> Generator[SqliteEventLogStorage, None, None]:
    log = SqliteEventLogStorage(str(folder))
    yield log
    log.dispose()


_WRITER = """
import sys
import dagster as dg
from tests.orchestration.test_event_log import observe
with dg.DagsterInstance.get() as instance:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(40):
        with instance.event_log_storage.batch():
            for part in "xyz":
                observe(instance, f"{sys.argv[1]} {number} {part}")
"""


def test_two_processes_write_at_once(instance: dg.DagsterInstance) -> None:
    """No write is lost or refused, and no batch has another's events between its own."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, name], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("one", "two")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    found = observed(instance)
    batches = [found[start : start + 3] for start in range(0, len(found), 3)]
    names = [[str(partition).rsplit(" ", 1) for partition in batch] for batch in batches]
    assert all([part for _, part in batch] == ["x", "y", "z"] for batch in names)
    assert sorted(batch[0][0] for batch in names) == sorted(
        f"{name} {number}" for name in ("one", "two") for number in range(40)
    )
    assert all(len({name for name, _ in batch}) == 1 for batch in names)


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


def test_the_watcher_of_a_run_is_told(location: Location, storage: BatchedEventLogStorage) -> None:
    """Who watches a run, as the web server does, is called with the events that are stored from then on."""
    write(location.folder, {"a.txt": "alpha"})
    run_id = location.run().run_id
    entries = location.instance.all_logs(run_id)
    heard: list[dg.EventLogEntry] = []
    complete = threading.Event()

    def hear(entry: dg.EventLogEntry, _cursor: str) -> None:
        heard.append(entry)
        if len(heard) == len(entries):
            complete.set()

    last = location.instance.get_records_for_run(run_id).cursor
    storage.watch(run_id, last, hear)
    storage.store_event_batch(entries)
    assert complete.wait(30)
    storage.end_watch(run_id, hear)
    assert heard == entries
