"""Terminations at random instants, as the UI asks for them and as the system sends them."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path

import dagster as dg
import pytest

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.integrity import check_integrity
from qedge_dagster.pipeline.lock import is_locked
from tests.orchestration.live.processes import Live, live, wait_for
from tests.pipeline.support import write

DOCUMENTS = 12
TERMINATIONS = 20
# After its first event, a run has 11 documents to go whose five events take 0.2 s each: it is not at its end by then.
RUN_SECONDS = 6.0


@pytest.mark.long
@pytest.mark.parametrize("how", ["graphql", "sigterm"])
@pytest.mark.parametrize("executor", ["in_process", "multiprocess"])
def test_terminations(tmp_path: Path, executor: str, how: str) -> None:
    """Every run that is terminated ends CANCELED and `cancelled`, wherever the request finds it, mostly while events
    are written; the index is consistent, the lock is free, and a run after it completes (every fifth time: the others
    are followed by one that is terminated too). A termination costs one window of embeddings at most."""
    texts = {f"{number:02}.txt": f"text {number}" for number in range(DOCUMENTS)}
    write(tmp_path / "docs", texts)
    settings = {"seconds_per_call": "0.05", "slow_events": "0.2", "executor": executor}
    random_instant = random.Random(f"{executor}/{how}")
    outcomes: Counter[tuple[dg.DagsterRunStatus, str | None]] = Counter()
    with live(tmp_path, **settings) as (dagster, instance):
        instance.add_dynamic_partitions("notes/docs", list(texts))
        span = {"dagster/asset_partition_range_start": "00.txt", "dagster/asset_partition_range_end": "11.txt"}
        for round_number in range(TERMINATIONS):
            write(tmp_path / "docs", {name: f"{text}, round {round_number}" for name, text in texts.items()})
            run_id = dagster.launch("notes_partitions", tags=span)
            started(instance, run_id)
            time.sleep(random_instant.uniform(0, RUN_SECONDS))
            if round_number % 3:  # else wherever it is
                wait_for((tmp_path / "writing").exists)
            if how == "graphql":
                dagster.terminate(run_id)
            else:
                os.kill(worker_of(instance, run_id), signal.SIGTERM)
            run = wait_for(partial(finished, instance, run_id))
            outcomes[run.status, run.tags.get("qedge/outcome")] += 1
            check_left(tmp_path, dagster)
            if round_number % 5 == 4:
                following = dagster.launch("notes_partitions", tags=span)
                assert wait_for(partial(finished, instance, following)).is_success
    # The first note of each process: what it was doing when it was told.
    first: dict[str, str] = {}
    for note in (tmp_path / "signals").read_text().splitlines():
        process, _, doing = note.partition(" ")
        first.setdefault(process, doing)
    embedded = (tmp_path / "texts").read_text().splitlines()
    print(outcomes, found := Counter(first.values()), f"{len(embedded)} texts, {len(set(embedded))} of them different")
    assert outcomes == {(dg.DagsterRunStatus.CANCELED, "cancelled"): TERMINATIONS}
    assert found["writing"] >= TERMINATIONS / 2
    assert len(embedded) - len(set(embedded)) <= TERMINATIONS


def started(instance: dg.DagsterInstance, run_id: str) -> None:
    """Wait for the first asset event of a run: its op is at work."""

    def has_event() -> bool:
        return any(
            entry.dagster_event is not None and entry.dagster_event.event_type_value == "ASSET_OBSERVATION"
            for entry in instance.all_logs(run_id)
        )

    wait_for(has_event)


def finished(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRun | None:
    run = instance.get_run_by_id(run_id)
    return run if run is not None and run.is_finished else None


def worker_of(instance: dg.DagsterInstance, run_id: str) -> int:
    """The process of a run, as Dagster notes it."""
    for entry in instance.all_logs(run_id):
        found = re.match(r"Started process for run \(pid: (\d+)\)", entry.message)
        if found:
            return int(found[1])
    raise AssertionError(f"run {run_id} has no process")


def check_left(root: Path, dagster: Live) -> None:
    database = root / "t.db"
    wait_for(lambda: not is_locked(database, "notes", "docs"), 10)
    with closing(Database(database)) as opened:
        assert check_integrity(opened, "notes") == []
    assert dagster.answers()


@pytest.mark.long
def test_kills(tmp_path: Path) -> None:
    """SIGKILL to a run's process at a random instant: the index is consistent, the lock is free, and the next run
    completes; Dagster ends the killed one as failed and frees its place in the pool."""
    texts = {f"{number:02}.txt": f"text {number}" for number in range(DOCUMENTS)}
    random_instant = random.Random("kill")
    with live(tmp_path, seconds_per_call="0.05", slow_events="0.2") as (dagster, instance):
        for round_number in range(5):
            write(tmp_path / "docs", {name: f"{text}, round {round_number}" for name, text in texts.items()})
            killed = dagster.launch("notes_ingest")
            started(instance, killed)
            time.sleep(random_instant.uniform(0, RUN_SECONDS))
            os.kill(worker_of(instance, killed), signal.SIGKILL)
            check_left(tmp_path, dagster)
            following = dagster.launch("notes_ingest")
            assert wait_for(partial(finished, instance, following), 300).is_success
            run = wait_for(partial(finished, instance, killed))
            assert run.status is dg.DagsterRunStatus.FAILURE
        assert len(set((tmp_path / "texts").read_text().splitlines())) == 5 * DOCUMENTS


@pytest.mark.long
def test_everything_dies(tmp_path: Path) -> None:
    """With webserver, daemon, code server and run all killed at once, the run stays STARTED. Started again, the sensor
    ends it, and a run of its own does what was left."""
    write(tmp_path / "docs", {f"{number:02}.txt": f"text {number}" for number in range(DOCUMENTS)})
    settings = {"seconds_per_call": "0.05", "slow_events": "0.2", "automatic": "1"}
    with live(tmp_path, **settings) as (dagster, instance):
        (run,) = wait_for(instance.get_runs)
        started(instance, run.run_id)
        dagster.kill()
    with live(tmp_path, **settings) as (dagster, instance):
        assert wait_for(partial(finished, instance, run.run_id), 300).status is dg.DagsterRunStatus.FAILURE
        newer = wait_for(lambda: [other for other in instance.get_runs() if other.run_id != run.run_id])
        assert wait_for(partial(finished, instance, newer[0].run_id)).is_success
        check_left(tmp_path, dagster)
    assert len((tmp_path / "texts").read_text().splitlines()) <= DOCUMENTS + 1
