"""The benchmark of extraction, on the documents made for it."""

from __future__ import annotations

from benchmarks.extraction import measure
from benchmarks.figures import Scale


def test_a_run() -> None:
    """Both formats are read by both readers."""
    figures = {figure.against: figure for figure in measure(Scale(rounds=1))}
    assert set(figures) == {"pypdfium2", "docx2txt"}
    assert "in 6 files" in figures["pypdfium2"].name
    assert "in 6 files" in figures["docx2txt"].name
    assert all(figure.ratio for figure in figures.values())
