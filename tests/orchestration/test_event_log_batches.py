"""A batch of events is stored whole or not at all."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress

import dagster as dg
import pytest

from qedge_dagster.orchestration.event_log import BatchedEventLogStorage
from tests.orchestration.event_log import observe, observed, rows
from tests.orchestration.support import Location
from tests.pipeline.support import write


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
