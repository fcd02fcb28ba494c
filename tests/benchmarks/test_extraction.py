"""The benchmark of extraction, on the documents made for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.extraction import COMPARED, compare, write_documents
from qedge_dagster.extractors import default_extractors


@pytest.mark.parametrize("name", COMPARED)
def test_a_run(tmp_path: Path, name: str) -> None:
    """Both readers read every file of the format."""
    write_documents(tmp_path, pages=4)
    (extractor,) = (extractor for extractor in default_extractors() if extractor.id == name)
    figure = compare(extractor, tmp_path, rounds=1)
    assert "in 6 files" in figure.name
    assert figure.ratio
