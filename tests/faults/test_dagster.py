"""Faults of the storage in a run of Dagster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from qedge_dagster.orchestration import BudgetConfig
from qedge_dagster.orchestration.presence import present
from tests.orchestration.support import Location
from tests.orchestration.test_sensor import documents, tick
from tests.pipeline.support import prose, write


@pytest.fixture
def location(tmp_path: Path) -> Iterator[Location]:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        location = Location(tmp_path, instance, BudgetConfig())
        write(location.folder, {f"{number}.txt": "\n\n".join(prose(number, 6)) for number in range(4)})
        yield location


def metadata(result: dg.ExecuteInProcessResult) -> dict[str, object]:
    """That of the failure of the run's op."""
    [event] = [event for event in result.all_events if event.event_type_value == "STEP_FAILURE"]
    data = event.step_failure_data.user_failure_data
    assert data is not None
    return {name: value.value for name, value in data.metadata.items()}


def test_damage_fails_the_run_with_its_code_and_quiets_the_sensor(location: Location) -> None:
    """6204 is in the failure's metadata. The sensor asks for no more runs of that file; a restored one it asks for."""
    assert location.run().success
    whole = location.database.read_bytes()
    write(location.folder, {"0.txt": "Changed."})
    request = tick(location)
    assert documents(request) == ["0.txt"]
    location.database.write_bytes(whole[:8192] + bytes(len(whole) - 8192))
    result = location.run(documents=documents(request))
    assert not result.success
    assert metadata(result)["code"] == 6204
    assert "backup" in str(metadata(result)["remedy"])
    assert "damaged" in str(tick(location))
    assert "damaged" in str(tick(location))
    location.database.write_bytes(whole)
    assert documents(tick(location)) == ["0.txt"]
    assert location.run(documents=["0.txt"]).success
    assert "Nothing" in str(tick(location))


def test_a_command_that_died_before_its_run_began_does_not_block(location: Location) -> None:
    """A run that its process left, in whatever state, is ended in the next tick; one whose process lives is not."""
    job = location.definitions.resolve_job_def("notes_ingest")
    home = Path(location.instance.root_directory)
    (home / "qedge").mkdir()
    dead, living = (
        location.instance.create_run_for_job(job, tags=location.target.run_tags, status=dg.DagsterRunStatus.NOT_STARTED)
        for _ in range(2)
    )
    (home / "qedge" / f".run-{dead.run_id}").touch()
    with present(home, living.run_id):
        assert str(tick(location)).startswith("A run is active")
    statuses = {run.run_id: run.status.value for run in location.instance.get_runs()}
    assert statuses == {dead.run_id: "FAILURE", living.run_id: "NOT_STARTED"}


def test_an_event_log_that_fails_is_a_failed_run(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """When Dagster cannot write an event, the run of the engine is recorded as failed, not as cancelled."""
    from qedge_dagster.orchestration.events import AssetEvents

    def full(self: object, event: object) -> None:  # noqa: ARG001
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(AssetEvents, "log", full)
    assert not location.run().success
    with location.resource().state("notes") as state:
        assert state is not None
        last = state.last_run()
        assert last is not None
        assert (last.outcome, last.error) == ("failed", "OSError")
