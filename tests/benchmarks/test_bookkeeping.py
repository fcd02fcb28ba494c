"""The benchmark of Dagster's bookkeeping, on a few documents."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_run() -> None:
    """Either event log gets five events for a changed document and none for an unchanged one."""
    command = [sys.executable, "-m", "benchmarks.bookkeeping", "--documents", "3", "--rounds", "2", "--json"]
    figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY).stdout)
    engine = figures.pop("engine_ms_per_changed")
    assert engine > 0
    assert (figures.pop("documents"), figures.pop("rounds")) == (3, 2)
    assert set(figures) == {"default", "batched", "artefacts"}
    for log in figures.values():
        assert (log["events_per_changed"], log["events_per_unchanged"]) == (5, 0)
        assert log["ratio"] * engine == pytest.approx(log["ms_per_changed"])
