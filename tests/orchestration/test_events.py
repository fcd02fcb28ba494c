"""What becomes of documents, as Dagster sees it: real runs on a real instance."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleCauseCategory, StaleStatus
from dagster._core.definitions.events import AssetKeyPartitionKey
from dagster._core.loader import LoadingContextForTest

from tests.extractors.pdf.builder import build, pages
from tests.orchestration.support import STAGES, Location
from tests.pipeline.support import write

ALL_EVENTS = [("observation", "source_documents"), *(("materialization", stage) for stage in STAGES)]


def of(location: Location, run: dg.ExecuteInProcessResult, partition: str) -> list[tuple[str, str]]:
    return [(kind, asset) for kind, asset, key in location.events(run.run_id) if key == partition]


def stale(location: Location, partition: str) -> dict[str, StaleStatus]:
    resolver = CachingStaleStatusResolver(
        location.instance,
        location.definitions.resolve_asset_graph(),
        LoadingContextForTest(location.instance),
    )
    return {stage: resolver.get_status(dg.AssetKey(["notes", stage]), partition) for stage in STAGES}


def test_new_changed_and_unchanged_documents(location: Location) -> None:
    """A new document is five events, an unchanged one none, an edited one five of its own; its partition exists."""
    write(location.folder, {"a.txt": "alpha", "b.md": "# Beta\n\nbeta", "odd...name.txt": "gamma"})
    first = location.run()
    assert first.success
    assert location.partitions() == ["a.txt", "b.md", "odd..%2Ename.txt"]
    for partition in location.partitions():
        assert of(location, first, partition) == ALL_EVENTS
    assert location.events(location.run().run_id) == []

    write(location.folder, {"a.txt": "alpha, edited"})
    edited = location.run(documents=["a.txt"])
    assert of(location, edited, "a.txt") == ALL_EVENTS
    assert Counter(key for _, _, key in location.events(edited.run_id)) == {"a.txt": 5}


def test_staleness_follows_the_source(location: Location) -> None:
    """After a run everything is fresh; an observed edit makes exactly that document's text stale, for a new data
    version; the run makes it fresh again."""
    write(location.folder, {"a.txt": "alpha", "b.txt": "beta"})
    location.run()
    fresh = dict.fromkeys(STAGES, StaleStatus.FRESH)
    assert stale(location, "a.txt") == fresh
    location.instance.report_runless_asset_event(
        dg.AssetObservation(location.target.source_key, partition="a.txt", tags={"dagster/data_version": "0" * 32})
    )
    assert stale(location, "a.txt")["extracted_documents"] is StaleStatus.STALE
    resolver = CachingStaleStatusResolver(
        location.instance, location.definitions.resolve_asset_graph(), LoadingContextForTest(location.instance)
    )
    causes = resolver.get_stale_causes(dg.AssetKey(["notes", "extracted_documents"]), "a.txt")
    assert [(cause.category, cause.dependency, cause.reason) for cause in causes] == [
        (
            StaleCauseCategory.DATA,
            AssetKeyPartitionKey(location.target.source_key, "a.txt"),
            "has a new dependency data version",
        )
    ]
    assert stale(location, "b.txt") == fresh
    write(location.folder, {"a.txt": "alpha, edited"})
    location.run(documents=["a.txt"])
    assert stale(location, "a.txt") == fresh


def test_same_text_stops_at_the_text(location: Location) -> None:
    """Saved again with the same text, only the text is materialised, with the same version, and nothing is stale."""
    write(location.folder, {"a.txt": "alpha\nbeta\n"})
    location.run()
    before = location.materialization("extracted_documents", "a.txt")
    write(location.folder, {"a.txt": "alpha\r\nbeta\r\n"})
    again = location.run(documents=["a.txt"])
    assert of(location, again, "a.txt") == ALL_EVENTS[:2]
    after = location.materialization("extracted_documents", "a.txt")
    assert after.tags["dagster/data_version"] == before.tags["dagster/data_version"]
    assert after.tags != before.tags
    assert stale(location, "a.txt") == dict.fromkeys(STAGES, StaleStatus.FRESH)


def test_a_failed_document_is_an_observation_and_a_warning(location: Location) -> None:
    """A broken document fails no run: its code and remedy are in an observation, and a check names it."""
    write(location.folder, {"a.txt": "alpha", "broken.txt": b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 8})
    run = location.run()
    assert run.success
    assert of(location, run, "broken.txt") == [("observation", "source_documents"), ("observation", "collection")]
    records = location.instance.fetch_observations(dg.AssetKey(["notes", "collection"]), limit=5).records
    observation = records[0].event_log_entry.asset_observation
    assert observation is not None
    assert observation.partition == "broken.txt"
    assert observation.metadata["code"].value == 6104
    assert observation.metadata["remedy"].value
    key = dg.AssetCheckKey(dg.AssetKey(["notes", "collection"]), "no_failed_documents")
    record = location.instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key]
    assert record.event is not None
    evaluation = record.event.dagster_event.asset_check_evaluation_data
    assert not evaluation.passed
    assert evaluation.severity is dg.AssetCheckSeverity.WARN
    assert "6104" in str(evaluation.metadata["errors"].value)


def test_a_document_read_in_part_is_no_materialisation(location: Location) -> None:
    """What was read of it is in the collection, with the failure as an observation. Once it is whole, every stage is
    materialised, also where a stage comes out the same."""
    content = "BT /F1 12 Tf 72 720 Td (Page {}) Tj ET"
    write(location.folder, {"a.pdf": build(pages([content.format(1), "", ""]))})
    run = replace(location, page_budget=1e-9).run()
    assert run.success
    assert of(location, run, "a.pdf") == [("observation", "source_documents"), ("observation", "collection")]
    with location.resource().state("notes") as state:
        assert state is not None
        row = state.document("docs", "a.pdf")
    assert row is not None
    assert (row.status, row.chunk_count) == ("failed", 1)
    assert row.error is not None
    assert "page 1 of 3" in row.error
    assert of(location, location.run(documents=["a.pdf"]), "a.pdf") == ALL_EVENTS
    assert location.embedder.texts == ["Page 1"]


def test_a_selection_materialises_each_of_its_documents(location: Location) -> None:
    """In a run for a range of partitions, unchanged, vanished and unsupported documents materialise every stage, each
    with a data version of its own; a failed one does not."""
    files: dict[str, str | bytes] = {
        "a.txt": "alpha",
        "b.txt": "beta",
        "c.xyz": "not a kind of document",
        "d.txt": b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 8,
        "e.txt": "epsilon",
    }
    write(location.folder, files)
    location.run()
    (location.folder / "b.txt").unlink()
    write(location.folder, {"e.txt": "epsilon, edited"})
    run = location.run_range("a.txt", "e.txt")
    assert run.success
    for partition in ("a.txt", "b.txt", "c.xyz", "e.txt"):
        assert of(location, run, partition) == ALL_EVENTS
    assert of(location, run, "d.txt") == [("observation", "collection")]
    outcomes = {
        key: location.materialization("collection", key).metadata["outcome"].value for key in files if key[0] != "d"
    }
    assert outcomes == {"a.txt": "unchanged", "b.txt": "vanished", "c.xyz": "unsupported", "e.txt": "indexed"}
    versions = {
        location.materialization("collection", key).tags["dagster/data_version"] for key in ("a.txt", "e.txt", "b.txt")
    }
    assert len(versions) == 3
    assert stale(location, "a.txt") == dict.fromkeys(STAGES, StaleStatus.FRESH)
    check_integrity_of_notes(location)


def check_integrity_of_notes(location: Location) -> None:
    checks = location.definitions.resolve_job_def("notes_checks").execute_in_process(instance=location.instance)
    assert checks.success
    passed = {evaluation.check_name: evaluation.passed for evaluation in checks.get_asset_check_evaluations()}
    assert passed == {"no_failed_documents": False, "nothing_stale": True, "index_integrity": True}


def test_removed_documents_are_named(location: Location) -> None:
    """A run that removes a document says so in its log, and in the metadata of its op beside its counts."""
    write(location.folder, {"a.txt": "alpha", "b.txt": "beta"})
    location.run()
    (location.folder / "b.txt").unlink()
    run = location.run()
    assert any("Removed b.txt: 1 chunks." in entry.message for entry in location.instance.all_logs(run.run_id))
    (output,) = [event for event in run.all_events if event.event_type_value == "STEP_OUTPUT"]
    metadata = {name: value.value for name, value in output.step_output_data.metadata.items()}
    assert metadata["removed"] == ["b.txt"]
    assert (metadata["documents_removed"], metadata["documents_skipped"], metadata["texts_embedded"]) == (1, 1, 0)
