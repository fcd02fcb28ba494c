"""The sensor in a running daemon: what each change of the folder costs, in runs, events and embedded texts."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest

from qedge_dagster.collection import Collection
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.integrity import check_integrity
from tests.orchestration.live.processes import live, wait_for
from tests.orchestration.support import STAGES
from tests.pipeline.support import write

_SENSOR = "notes_reindex"


class Watcher:
    """What has happened in the instance since the last look."""

    def __init__(self, root: Path, instance: dg.DagsterInstance) -> None:
        self.root, self.instance = root, instance
        self._seen: set[str] = set()

    def ticks(self) -> int:
        """Finished evaluations of the sensor."""
        (state,) = [s for s in self.instance.all_instigator_state() if s.instigator_name == _SENSOR]
        return sum(
            tick.status.value in ("SKIPPED", "SUCCESS")
            for tick in self.instance.get_ticks(state.instigator_origin_id, state.selector_id)
        )

    def after_ticks(self, number: int = 2) -> list[dg.DagsterRun]:
        """The runs of so many whole ticks from now, finished. The tick that is under way is not one of them."""
        begun = self.ticks()
        wait_for(lambda: self.ticks() > begun + number)
        wait_for(lambda: all(run.is_finished for run in self.instance.get_runs()))
        new = [run for run in self.instance.get_runs() if run.run_id not in self._seen]
        self._seen.update(run.run_id for run in new)
        return new

    def events(self, run: dg.DagsterRun) -> Counter[tuple[str, str | None]]:
        """Number of asset events by kind and partition."""
        kinds = {"ASSET_MATERIALIZATION": "materialization", "ASSET_OBSERVATION": "observation"}
        return Counter(
            (kinds[event.event_type_value], event.partition)
            for entry in self.instance.all_logs(run.run_id)
            if (event := entry.dagster_event) is not None and event.event_type_value in kinds
        )

    def versions(self) -> dict[tuple[str, str], str]:
        """The newest data version of each stage and partition."""
        found: dict[tuple[str, str], str] = {}
        for stage in STAGES:
            key = dg.AssetKey(["notes", stage])
            for record in self.instance.fetch_materializations(key, limit=1000, ascending=True).records:
                event = record.asset_materialization
                assert event is not None
                found[stage, event.partition or ""] = (event.tags or {})["dagster/data_version"]
        return found

    def texts(self) -> int:
        return len((self.root / "texts").read_text().splitlines())

    def documents(self) -> set[str]:
        with Collection.open(self.root / "t.db", "notes") as collection:
            return {chunk.document_id for chunk in collection.chunks()}

    def partitions(self) -> set[str]:
        return set(self.instance.get_dynamic_partitions("notes/docs"))


@pytest.mark.long
def test_each_change_costs_its_own(tmp_path: Path) -> None:
    """Add, edit, touch, rename, delete, and a file that is no text: within two ticks one run each (none for a touched
    file), over the documents that changed, with at most five events for one."""
    docs = tmp_path / "docs"
    write(docs, {f"{number}.txt": f"text {number}" for number in range(5)})
    one = Counter({("materialization", "new.txt"): 4, ("observation", "new.txt"): 1})
    with live(tmp_path, automatic="1") as (_, instance):
        watch = Watcher(tmp_path, instance)
        wait_for(lambda: instance.all_instigator_state() and watch.ticks() > 2)
        assert [run.is_success for run in watch.after_ticks()] == [True]

        write(docs, {"new.txt": "a new text"})
        (run,) = watch.after_ticks()
        assert run.is_success
        assert watch.events(run) == one

        versions, embedded = watch.versions(), watch.texts()
        write(docs, {"new.txt": "another text"})
        (run,) = watch.after_ticks()
        assert watch.events(run) == one
        changed = {key for key, version in watch.versions().items() if versions[key] != version}
        assert changed == {(stage, "new.txt") for stage in STAGES}
        assert watch.texts() == embedded + 1

        os.utime(docs / "new.txt", (1, 1))
        assert watch.after_ticks() == []

        embedded = watch.texts()
        (docs / "new.txt").rename(docs / "renamed.txt")
        (run,) = watch.after_ticks()
        assert {partition for _, partition in watch.events(run)} == {"renamed.txt"}
        wait_for(lambda: "new.txt" not in watch.partitions())
        assert "renamed.txt" in watch.partitions()
        assert watch.texts() == embedded

        (docs / "renamed.txt").unlink()
        (run,) = watch.after_ticks()
        assert watch.events(run) == Counter()
        assert "renamed.txt" not in watch.documents()
        wait_for(lambda: "renamed.txt" not in watch.partitions())

        write(docs, {"program.txt": b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 8})
        (run,) = watch.after_ticks()
        assert run.is_success
        checks = [
            event.asset_check_evaluation_data
            for entry in instance.all_logs(run.run_id)
            if (event := entry.dagster_event) is not None and event.event_type_value == "ASSET_CHECK_EVALUATION"
        ]
        (failed,) = [check for check in checks if not check.passed]
        assert (failed.check_name, failed.severity) == ("no_failed_documents", dg.AssetCheckSeverity.WARN)
        assert "6104" in str(failed.metadata["errors"])
        assert watch.after_ticks() == []


@pytest.mark.long
def test_a_budget_is_continued_by_the_next_tick(tmp_path: Path) -> None:
    """max_documents=3 over 10 documents: three runs CANCELED as suspended with three documents each and one that
    completes, without anyone's doing; each text is embedded once."""
    write(tmp_path / "docs", {f"{number}.txt": f"text {number}" for number in range(10)})
    with live(tmp_path, automatic="1", max_documents="3") as (_, instance):
        watch = Watcher(tmp_path, instance)
        wait_for(lambda: (tmp_path / "texts").exists() and watch.texts() == 10)
        watch.after_ticks(1)
        runs = list(reversed(instance.get_runs()))
        assert [run.status for run in runs] == [dg.DagsterRunStatus.CANCELED] * 3 + [dg.DagsterRunStatus.SUCCESS]
        assert [run.tags.get("qedge/suspend_reason") for run in runs] == ["budget:documents"] * 3 + [None]
        assert [run.tags.get("qedge/outcome") for run in runs] == ["suspended"] * 3 + [None]
        sizes = [len({partition for _, partition in watch.events(run)}) for run in runs]
        assert sizes == [3, 3, 3, 1]
        assert watch.texts() == 10
    with closing(Database(tmp_path / "t.db")) as opened:
        assert check_integrity(opened, "notes") == []
