"""The check of the whole index says what `qedge doctor` says."""

from __future__ import annotations

from contextlib import closing

import dagster as dg

from qedge_dagster.collection.connection import Database
from qedge_dagster.pipeline.doctor import mend
from tests.orchestration.support import Location
from tests.pipeline.support import write


def integrity(location: Location) -> dg.AssetCheckEvaluation:
    run = location.definitions.resolve_job_def("notes_checks").execute_in_process(instance=location.instance)
    return next(e for e in run.get_asset_check_evaluations() if e.check_name == "index_integrity")


def test_index_integrity(location: Location) -> None:
    """Damage fails the check, with what is wrong and what a repair does; after the repair and a run it passes."""
    write(location.folder, {"a.txt": "alpha", "b.txt": "beta"})
    location.run()
    assert integrity(location).passed
    with closing(Database(location.database)) as database:
        database.connection.execute("DELETE FROM notes_vec WHERE rowid = 1")
    failed = integrity(location)
    assert not failed.passed
    assert failed.metadata["problems"].value == ["1 chunks without a vector"]
    assert "indexed again by the next run" in str(failed.metadata["remedies"].value)
    assert mend(location.database).healthy
    assert integrity(location).passed
    assert [asset for _, asset, key in location.events(location.run().run_id) if key == "a.txt"]
    with closing(Database(location.database)) as database:
        assert database.connection.execute("SELECT count(*) FROM notes_vec").get == 2
