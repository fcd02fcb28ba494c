"""The benchmark of start-up."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.figures import Scale
from benchmarks.start import command, measure


@pytest.mark.long
def test_a_run() -> None:
    """Both commands are held against imports, by the clock and by their CPU; two of the figures have a target."""
    figures = list(measure(Scale(rounds=1)))
    assert [figure.target is not None for figure in figures] == [True, False, True, False]
    assert all(figure.ratio for figure in figures)


def test_a_command_that_fails(tmp_path: Path) -> None:
    """It has no time: the benchmark ends."""
    with pytest.raises(subprocess.CalledProcessError):
        command(tmp_path, "import nothing_of_this_name")()
