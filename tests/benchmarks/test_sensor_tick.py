"""The benchmark of the sensor, on a few documents."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_run() -> None:
    """Ticks over unchanged documents launch nothing, and their times are printed."""
    command = [sys.executable, "-m", "benchmarks.sensor_tick", "--documents", "30", "--rounds", "2", "--json"]
    figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY).stdout)
    assert (figures["documents"], figures["rounds"], figures["runs"], figures["assets_with_events"]) == (30, 2, 0, 0)
    assert min(figures["stat_loop_ms"], figures["tick_of_one_ms"], figures["tick_ms"]) > 0
