"""The benchmark of extraction ahead, on a few documents."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("given", [False, True], ids=["made", "given"])
def test_a_run(given: bool) -> None:
    """The PDF files, made or of a folder, are read with it and without, and none fails."""
    folder = [str(REPOSITORY / "examples" / "docs")] if given else []
    command = [sys.executable, "-m", "benchmarks.ahead", *folder, "--documents", "1", "--rounds", "1", "--json"]
    figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY).stdout)
    assert (figures["documents"], figures["documents_failed"], figures["rounds"]) == (2, 0, 1)
    assert figures["chunks"] > 10
    assert figures["ratio"] == pytest.approx(figures["seconds_in_turn"] / figures["seconds_ahead"])
