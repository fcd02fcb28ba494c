"""Runs in processes of their own, stopped and killed from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

import qedge_dagster
from qedge_dagster.orchestration.partitions import add_partitions
from tests.orchestration.support import Location
from tests.pipeline.support import write

ROOT = Path(qedge_dagster.__file__).parents[1]
FILES: dict[str, str | bytes] = {f"{number:02}.txt": f"text number {number}" for number in range(30)}


def stop_after_first_document(location: Location, executor: str, number: signal.Signals) -> dg.DagsterRun:
    """Start a run over all partitions, send the signal once a document is materialised, and wait for the end."""
    names = sorted(FILES)
    add_partitions(location.instance, location.target.partitions_name, names)
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(location.root / "home"),
        "QEDGE_TEST_ROOT": str(location.root),
        "QEDGE_TEST_EXECUTOR": executor,
    }
    code = f"from tests.orchestration.partition_run import main; main({names[0]!r}, {names[-1]!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    key = dg.AssetKey(["notes", "collection"])
    while not location.instance.fetch_materializations(key, limit=1).records:
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(number)
    process.wait()
    (run,) = location.instance.get_runs()
    return run


@pytest.mark.long
@pytest.mark.parametrize("executor", ["in_process", "multiprocess"])
def test_sigterm_cancels(location: Location, executor: str) -> None:
    """SIGTERM to the process of a run: CANCELED and `cancelled` in either executor, part of the documents done, the
    index consistent; the next run does the rest."""
    write(location.folder, FILES)
    run = stop_after_first_document(location, executor, signal.SIGTERM)
    assert run.status is dg.DagsterRunStatus.CANCELED
    assert run.tags["qedge/outcome"] == "cancelled"
    done = location.instance.fetch_materializations(dg.AssetKey(["notes", "collection"]), limit=100).records
    assert 0 < len(done) < len(FILES)
    assert location.problems() == []
    assert location.run().success
    assert len(location.embedder.texts) == len(FILES) - len(done)


@pytest.mark.long
def test_sigkill_blocks_nothing(location: Location) -> None:
    """SIGKILL leaves the run STARTED for Dagster, the index consistent, and the lock free: the next run completes."""
    write(location.folder, FILES)
    run = stop_after_first_document(location, "in_process", signal.SIGKILL)
    assert run.status is dg.DagsterRunStatus.STARTED
    assert location.problems() == []
    assert location.run().success
    assert len(location.embedder.texts) < len(FILES)
