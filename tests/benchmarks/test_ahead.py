"""The benchmark of extraction ahead, on a few documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.ahead import compare


@pytest.mark.long
def test_a_run(tmp_path: Path) -> None:
    """The files are read with it and without, and each run is into a database of its own."""
    figure = compare(tmp_path, 1, 1)
    assert figure.ratio
    assert sorted(path.suffix for path in (tmp_path / "documents").iterdir()) == [".md", ".pdf"]
    assert len(list(tmp_path.glob("*.db"))) == 4
