"""The event log with readers, other writers and watchers beside it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from dagster._core.storage.event_log import SqliteEventLogStorage

import qedge_dagster
from qedge_dagster.orchestration.event_log import BatchedEventLogStorage
from tests.orchestration.event_log import observe, observed, rows
from tests.orchestration.support import Location
from tests.pipeline.support import write

ROOT = Path(qedge_dagster.__file__).parents[1]


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
from tests.orchestration.event_log import observe
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
