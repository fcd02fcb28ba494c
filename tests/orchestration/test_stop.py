"""Budgets and cancellations: committed, materialised, tagged, CANCELED, and picked up by the next run."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest

from qedge_dagster.orchestration import BudgetConfig
from qedge_dagster.pipeline import IngestionPipeline, RunOptions
from tests.orchestration.support import CountingResource, Location
from tests.pipeline.support import CountingEmbedder, write

FILES: dict[str, str | bytes] = {f"{number}.txt": f"text number {number}" for number in range(10)}


def status(location: Location, run: dg.ExecuteInProcessResult) -> tuple[dg.DagsterRunStatus, dict[str, str]]:
    stored = location.instance.get_run_by_id(run.run_id)
    assert stored is not None
    return stored.status, {
        name: value for name, value in stored.tags.items() if name.startswith("qedge/") and name != "qedge/target"
    }


@pytest.fixture
def handlers() -> Iterator[None]:
    """Whatever a test does, the handlers of the suite come back, and they came back before it ended."""
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    yield
    after = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGTERM, before[0])
    signal.signal(signal.SIGINT, before[1])
    assert after[1] == before[1]


def stop_before(location: Location) -> Callable[[CountingResource], CountingEmbedder]:
    """An embedder that is given together with a SIGTERM, before the engine is open."""

    def embedder(_: CountingResource) -> CountingEmbedder:
        os.kill(os.getpid(), signal.SIGTERM)
        return location.embedder

    return embedder


def test_a_spent_budget_cancels_and_the_next_run_goes_on(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    """max_documents=3 of 10: CANCELED with both tags, exactly 3 partitions materialised; in the end each text was
    embedded once."""
    location = Location(tmp_path, instance, BudgetConfig(max_documents=3))
    write(location.folder, FILES)
    run = location.run()
    assert status(location, run) == (
        dg.DagsterRunStatus.CANCELED,
        {"qedge/outcome": "suspended", "qedge/suspend_reason": "budget:documents"},
    )
    done = {key for kind, asset, key in location.events(run.run_id) if asset == "collection"}
    assert len(done) == 3
    assert location.partitions() == sorted(done)
    for expected in (6, 9):
        location.run()
        assert len(location.partitions()) == expected
    last = location.run()
    assert status(location, last) == (dg.DagsterRunStatus.SUCCESS, {})
    assert sorted(location.embedder.texts) == sorted(str(text) for text in FILES.values())
    assert location.problems() == []


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_an_event_is_written(
    location: Location, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """A signal in the middle of an event's write ends the run CANCELED and `cancelled` at the next boundary: the event
    is whole, the index is consistent, the lock is free, and the next run completes."""
    write(location.folder, FILES)
    write_event = location.instance.event_log_storage.store_event
    written: list[str] = []

    def interrupted(event: dg.EventLogEntry) -> None:
        if event.is_dagster_event and event.get_dagster_event().is_step_materialization:
            written.append(event.run_id)
            if len(written) == 2:
                os.kill(os.getpid(), number)
        write_event(event)

    monkeypatch.setattr(location.instance.event_log_storage, "store_event", interrupted)
    run = location.run()
    monkeypatch.undo()
    found, tags = status(location, run)
    assert (found, tags["qedge/outcome"]) == (dg.DagsterRunStatus.CANCELED, "cancelled")
    assert len([1 for kind, asset, _ in location.events(run.run_id) if asset == "collection"]) == 1
    again = location.run()
    assert again.success
    assert len(location.partitions()) == len(FILES)
    assert location.problems() == []


@pytest.mark.usefixtures("handlers")
def test_a_signal_while_the_model_is_loaded(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal before the engine is open is no failure either: nothing is done, and the run is CANCELED."""
    write(location.folder, FILES)
    monkeypatch.setattr(CountingResource, "embedder", stop_before(location))
    found, tags = status(location, run := location.run())
    assert (found, tags["qedge/outcome"]) == (dg.DagsterRunStatus.CANCELED, "cancelled")
    assert location.events(run.run_id) == []


@pytest.mark.usefixtures("handlers")
def test_a_signal_while_it_waits_for_the_lock(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is still to have its turn is CANCELED, not failed for the lock."""
    write(location.folder, FILES)
    with IngestionPipeline.open(location.database, collection="notes", embedder=CountingEmbedder()) as pipeline:
        events = pipeline.events(location.target.source, RunOptions())
        next(events)
        monkeypatch.setattr(CountingResource, "embedder", stop_before(location))
        found, tags = status(location, location.run())
        events.close()
    assert (found, tags["qedge/outcome"]) == (dg.DagsterRunStatus.CANCELED, "cancelled")


def test_a_lasting_fault_of_the_embedder(location: Location) -> None:
    """When no text can be embedded the run is suspended for it; every document's partition says why."""
    write(location.folder, FILES)
    location.embedder._fail_on = lambda _: True  # pyright: ignore[reportPrivateUsage]
    run = location.run()
    assert status(location, run) == (
        dg.DagsterRunStatus.CANCELED,
        {"qedge/outcome": "suspended", "qedge/suspend_reason": "embedding:failed"},
    )
    selected = location.run_range("0.txt", "1.txt")
    assert selected.success  # two failed documents suspend nothing
    assert {asset for _, asset, _ in location.events(selected.run_id)} == {"source_documents", "collection"}


def test_a_busy_lock_fails_with_its_code(location: Location) -> None:
    """A run that cannot get the lock in time is a failure which names 6008 and the active run."""
    write(location.folder, {"a.txt": "alpha"})
    with IngestionPipeline.open(location.database, collection="notes", embedder=CountingEmbedder()) as pipeline:
        events = pipeline.events(location.target.source, RunOptions())
        next(events)
        run = location.run()
        events.close()
    assert not run.success
    failures = [event for event in run.all_events if event.event_type_value == "STEP_FAILURE"]
    assert "6008" in str(failures[0].step_failure_data.user_failure_data)
    assert location.run().success
