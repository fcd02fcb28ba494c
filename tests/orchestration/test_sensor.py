"""The sensor: what it asks for, and when it asks for nothing."""

from __future__ import annotations

import json
import os
from contextlib import closing
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from qedge_dagster.collection import Collection
from qedge_dagster.collection.connection import Database
from qedge_dagster.orchestration import (
    abandoned,
    build_full_pass_schedule,
    build_ingest_job,
    build_reindex_sensor,
)
from qedge_dagster.pipeline import IngestionPipeline, RunOptions
from qedge_dagster.pipeline.doctor import mend
from tests.orchestration.support import Location
from tests.pipeline.support import write


def tick(location: Location, cursor: str | None = None, **settings: Any) -> dg.RunRequest | str:
    """The request of one tick, or its reason for none."""
    return tick_with_cursor(location, cursor, **settings)[0]


def tick_with_cursor(location: Location, cursor: str | None, **settings: Any) -> tuple[dg.RunRequest | str, str | None]:
    sensor = build_reindex_sensor(location.target, build_ingest_job(location.target), **settings)
    with dg.build_sensor_context(
        location.instance,
        cursor=cursor,
        resources={"ingestion": location.resource()},
        definitions=location.definitions,
    ) as context:
        data = sensor.evaluate_tick(context)
    if data.run_requests:
        return data.run_requests[0], data.cursor
    assert data.skip_message
    return data.skip_message, data.cursor


def documents(request: dg.RunRequest | str) -> list[str]:
    assert isinstance(request, dg.RunRequest), request
    return request.run_config["ops"]["notes_ingest_documents"]["config"]["documents"]


def run(location: Location, request: dg.RunRequest | str) -> dg.ExecuteInProcessResult:
    return location.run(documents=documents(request))


def test_add_edit_touch_rename_delete(location: Location) -> None:
    """Each change asks for exactly its documents, once; a touched file for none. Partitions follow the documents."""
    write(location.folder, {"a.txt": "alpha", "b.txt": "beta", "c.txt": "gamma"})
    request = tick(location)
    assert documents(request) == ["a.txt", "b.txt", "c.txt"]
    assert location.partitions() == ["a.txt", "b.txt", "c.txt"]
    assert run(location, request).success
    reason = tick(location)
    assert reason == "Nothing is known to be outstanding: 3 documents have their recorded size and time."

    write(location.folder, {"a.txt": "alpha, edited"})
    request = tick(location)
    assert documents(request) == ["a.txt"]
    run(location, request)

    os.utime(location.folder / "b.txt", (1, 1))
    assert "1 of them have a new time and the same content" in str(tick(location))
    assert "new time" not in str(tick(location))

    (location.folder / "c.txt").rename(location.folder / "d.txt")
    embedded = len(location.embedder.texts)
    request = tick(location)
    assert documents(request) == ["d.txt", "c.txt"]
    assert run(location, request).success
    assert len(location.embedder.texts) == embedded
    assert isinstance(tick(location), str)
    assert location.partitions() == ["a.txt", "b.txt", "d.txt"]


def test_requests_are_distinct_and_bounded(location: Location) -> None:
    """A run gets so many documents at most, and a request repeated with the next tick is another request."""
    write(location.folder, {f"{number}.txt": f"text {number}" for number in range(5)})
    first, second = tick(location, documents_per_run=2), tick(location, documents_per_run=2)
    assert documents(first) == documents(second) == ["0.txt", "1.txt"]
    assert isinstance(first, dg.RunRequest)
    assert isinstance(second, dg.RunRequest)
    assert first.run_key != second.run_key


def test_nothing_is_asked_for_while_a_run_is_active(location: Location) -> None:
    """While a run of the target is queued, or any run holds its lock, the tick is skipped with a reason."""
    write(location.folder, {"a.txt": "alpha"})
    job = location.definitions.resolve_job_def("notes_ingest")
    active = location.instance.create_run_for_job(job, tags=location.target.run_tags)
    assert str(tick(location)).startswith("A run is active")
    location.instance.delete_run(active.run_id)
    assert documents(tick(location)) == ["a.txt"]
    with IngestionPipeline.open(location.database, collection="notes", embedder=location.embedder) as pipeline:
        events = pipeline.events(location.target.source, RunOptions())
        next(events)
        assert str(tick(location)).startswith("A run is active")
        events.close()


def test_a_run_that_died_does_not_block(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is STARTED for Dagster, without the lock for longer than the grace, is ended as failed, and the tick
    asks for what it left. One that is still to start, or has not been seen for as long, is left alone."""
    write(location.folder, {"a.txt": "alpha"})
    job = location.definitions.resolve_job_def("notes_ingest")
    dead, waiting = (
        location.instance.create_run_for_job(job, tags=location.target.run_tags, status=status)
        for status in (dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.NOT_STARTED)
    )
    reason, cursor = tick_with_cursor(location, None)
    assert str(reason).startswith("A run is active")
    assert list(json.loads(cursor or "")) == [dead.run_id]
    monkeypatch.setattr(abandoned, "_GRACE_SECONDS", 0.0)
    _, cursor = tick_with_cursor(location, cursor)
    assert cursor == "{}"
    statuses = {run.run_id: run.status for run in location.instance.get_runs()}
    assert statuses == {dead.run_id: dg.DagsterRunStatus.FAILURE, waiting.run_id: dg.DagsterRunStatus.NOT_STARTED}
    location.instance.delete_run(waiting.run_id)
    assert documents(tick(location, cursor)) == ["a.txt"]


def test_a_failed_document_is_not_asked_for_again(location: Location) -> None:
    """A failed document that did not change asks for no run; once it is saved anew it does."""
    broken = b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 8
    write(location.folder, {"a.txt": "alpha", "broken.txt": broken})
    run(location, tick(location))
    assert isinstance(tick(location), str)
    write(location.folder, {"broken.txt": "mended"})
    assert documents(tick(location)) == ["broken.txt"]


def test_what_a_repair_has_given_up_is_asked_for(location: Location) -> None:
    """A document that lost rows has no recipe after `qedge doctor --repair`: it is asked for, and only it."""
    write(location.folder, {"a.txt": "alpha", "b.txt": "beta"})
    location.run()
    with closing(Database(location.database)) as database:
        database.connection.execute("DELETE FROM notes WHERE document_id = 'a.txt'")
    assert mend(location.database).healthy
    request = tick(location)
    assert documents(request) == ["a.txt"]
    assert run(location, request).success
    assert location.problems() == []


def test_an_unmounted_folder_asks_for_nothing(location: Location) -> None:
    """A source that cannot be listed, or that suddenly lists nothing, neither asks for runs nor loses partitions."""
    write(location.folder, {"a.txt": "alpha"})
    run(location, tick(location))
    (location.folder / "a.txt").unlink()
    assert isinstance(tick(location), str)
    location.folder.rmdir()
    assert "6051" in str(tick(location))
    assert location.partitions() == ["a.txt"]


def test_another_model_asks_for_the_rebuild_job(location: Location) -> None:
    """With another model than the collection's no run is launched: 6012 and the rebuild job are named. The rebuild
    makes everything current again."""
    write(location.folder, {"a.txt": "alpha"})
    run(location, tick(location))
    location.embedder.model_hash = "model-b"
    reason = tick(location)
    assert "6012" in str(reason)
    assert "rebuild job" in str(reason)
    rebuilt = location.run("notes_rebuild")
    assert rebuilt.success
    materialised = {asset for kind, asset, _ in location.events(rebuilt.run_id) if kind == "materialization"}
    assert "chunk_embeddings" in materialised
    assert str(tick(location)).startswith("Nothing is known")


def test_prune_removes_rows_and_partitions(location: Location) -> None:
    """The prune job removes what is gone, rows and partitions, without reading a document."""
    write(location.folder, {"a.txt": "alpha", "b.txt": "beta"})
    location.run()
    (location.folder / "b.txt").unlink()
    calls = location.embedder.calls
    assert location.run("notes_prune").success
    assert location.partitions() == ["a.txt"]
    assert location.embedder.calls == calls
    assert location.problems() == []


def test_the_schedule_runs_the_whole_source(location: Location) -> None:
    """The full pass finds an edit that kept size and modification time, which the sensor cannot see."""
    write(location.folder, {"a.txt": "alpha"})
    os.utime(location.folder / "a.txt", (1, 1))
    location.run()
    write(location.folder, {"a.txt": "omega"})
    os.utime(location.folder / "a.txt", (1, 1))
    assert isinstance(tick(location), str)
    schedule = build_full_pass_schedule(location.target, build_ingest_job(location.target))
    with dg.build_schedule_context(location.instance) as context:
        requests = schedule.evaluate_tick(context).run_requests or []
    assert [request.run_config for request in requests] == [{}]
    full = location.run()
    assert [asset for _, asset, key in location.events(full.run_id) if key == "a.txt"][-1] == "collection"


def test_documents_that_are_gone_are_kept_on_request(location: Location) -> None:
    """With `delete_missing: false` neither the sensor nor a run, of partitions or of everything, removes one."""
    write(location.folder, {"a.txt": "alpha", "b.txt": "beta"})
    location.run()
    (location.folder / "b.txt").unlink()
    keeping = replace(location, delete_missing=False)
    assert isinstance(tick(keeping), str)
    assert keeping.run_range("a.txt", "b.txt").success
    assert keeping.run().success
    assert location.materialization("collection", "b.txt").metadata["outcome"].value == "indexed"
    with Collection.open(location.database, "notes") as collection:
        assert {chunk.document_id for chunk in collection.chunks()} == {"a.txt", "b.txt"}
    assert documents(tick(location)) == ["b.txt"]
