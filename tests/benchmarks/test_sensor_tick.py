"""The benchmark of the sensor, on a few documents."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from benchmarks.sensor_tick import figures, prepare_tick


def test_a_run(tmp_path: Path) -> None:
    """All figures are held against the same loop."""
    found = list(figures(tmp_path, 30, 2))
    assert len(found) == 4
    assert min(figure.ours for figure in found) > 0
    assert len({figure.limit for figure in found}) == 1


def test_a_tick_asks_for_nothing(tmp_path: Path) -> None:
    """The documents are in the database: no run is asked for, and no tick adds an event."""
    instance = dg.DagsterInstance.ephemeral()
    assert "3 documents have their recorded size and time" in prepare_tick(tmp_path, instance, 3)()
    assert instance.get_runs_count() == 0
    assert instance.all_asset_keys() == []
