"""Several processes at one database, at once."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from qedge_dagster import QedgeError
from tests.faults.support import Scene, copy_database, run
from tests.pipeline.support import check_integrity, contents

# A run takes longer than a second one waits for the lock.
_SECONDS_PER_CALL = 0.05
_FORK = multiprocessing.get_context("fork")


def _write(database: Path, docs: Path, together: Barrier, ends: Queue[str]) -> None:
    together.wait()
    try:
        ends.put(run(database, docs, seconds_per_call=_SECONDS_PER_CALL).outcome)
    except QedgeError as error:
        ends.put(str(error.code))


def race(folder: Path, times: int) -> Counter[tuple[str, ...]]:
    """Two runs of one source, let go at the same instant, on a database that exists or does not."""
    scene = Scene.make(folder, 2)
    database, ends = folder / "index.db", Counter[tuple[str, ...]]()
    for number in range(times):
        copy_database(scene.references[0], database)
        if number % 2:
            database.unlink()
        together, told = _FORK.Barrier(2), _FORK.Queue()
        writers = [_FORK.Process(target=_write, args=(database, scene.folders[1], together, told)) for _ in range(2)]
        for writer in writers:
            writer.start()
        ends[tuple(sorted(told.get(timeout=60) for _ in writers))] += 1
        for writer in writers:
            writer.join()
        check_integrity(database)
        assert contents(database) == contents(scene.references[1])
    print(f"\n{times} races: {dict(ends)}")
    return ends


def test_two_writers_at_once(tmp_path: Path) -> None:
    """One completes. The other is refused with 6008, or comes late and finds everything done; nothing is damaged."""
    assert set(race(tmp_path, 5)) <= {("6008", "completed"), ("completed", "completed")}


@pytest.mark.long
def test_a_hundred_pairs_of_writers(tmp_path: Path) -> None:
    """The same, and 6008 among them."""
    ends = race(tmp_path, 100)
    assert set(ends) <= {("6008", "completed"), ("completed", "completed")}
    assert ends[("6008", "completed")] > 0
