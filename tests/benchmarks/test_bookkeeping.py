"""The benchmark of Dagster's bookkeeping, on a few documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bookkeeping import Run, compare, figures


@pytest.mark.long
def test_a_run(tmp_path: Path) -> None:
    """Either event log gets five events for a changed document and none for an unchanged one; the engine has none."""
    runs = compare(tmp_path, 3, 1, default_log=True)
    assert {name: (run.events_changed, run.events_unchanged) for name, run in runs.items()} == {
        "engine": (0, 0),
        "dagster": (5, 0),
        "artefacts": (5, 0),
        "default log": (5, 0),
    }
    assert all(min(run.changed, run.unchanged, run.per_second) > 0 for run in runs.values())


def test_figures_by_hand() -> None:
    """Bookkeeping is what a run under Dagster costs beside the engine, the artefacts what they cost beside that."""
    runs = {
        "engine": Run(changed=5, unchanged=1, events_changed=0, events_unchanged=0, per_second=200),
        "dagster": Run(changed=15, unchanged=4, events_changed=5, events_unchanged=0, per_second=60),
        "artefacts": Run(changed=22, unchanged=4, events_changed=5, events_unchanged=0, per_second=40),
    }
    found = {figure.name: (figure.ours, figure.met) for figure in figures(runs, 10)}
    assert found == {
        "Dagster: one of 10 changed documents": (10, True),
        "Dagster: events of a changed document": (5, True),
        "Dagster: events of an unchanged document": (0, True),
        "Dagster: a run over 10 unchanged documents": (30, None),
        "Dagster: a run over 10 changed documents": (60, True),
        "Dagster: the same, the engine alone": (200, None),
        "Dagster: Parquet artefacts of a document": (7, None),
    }
