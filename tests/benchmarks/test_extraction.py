"""The benchmark of extraction, on the documents made for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.extraction import measure

REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_run() -> None:
    """Both formats are read by both readers, with no file left out."""
    command = [sys.executable, "-m", "benchmarks.extraction", "--rounds", "1", "--json"]
    figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY).stdout)
    assert figures["rounds"] == 1
    assert (figures["pdf"]["other"], figures["docx"]["other"]) == ("pypdfium2", "docx2txt")
    for name in ("pdf", "docx"):
        speed = figures[name]
        assert (speed["files"], speed["left_out"]) == (6, 0)
        assert speed["units"] > 200
        assert speed["ratio"] == pytest.approx(speed["other_per_second"] / speed["ours_per_second"])


def test_nothing_to_compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A format without an extractor, or without a file that can be read, has no figures."""
    (tmp_path / "a.pdf").write_bytes(b"no PDF")
    assert measure([tmp_path], 1) == {"pdf": None, "docx": None}
    monkeypatch.setattr("benchmarks.extraction.default_extractors", tuple)
    assert measure([tmp_path], 1) == {"pdf": None, "docx": None}
