"""Runs over documents whose extraction goes wrong in every way: each costs itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from qedge_dagster import FolderSource, IngestionPipeline
from qedge_dagster.errors import QedgeError
from qedge_dagster.pipeline import IngestionOptions
from tests.extractors.isolated import Misbehaving
from tests.pipeline.support import CountingEmbedder, contents, write


def children() -> list[str]:
    tasks = Path("/proc/self/task").iterdir()
    return [pid for task in tasks for pid in (task / "children").read_text().split()]


def test_a_run_among_misbehaving_parsers(tmp_path: Path) -> None:
    """Those that hang, crash, or eat memory fail with 6102, the others are indexed, in order; no process is left, and
    the run completes."""
    words = ["first", "sleep", "second", "segfault", "third", "allocate", "fourth", "6103", "fifth"]
    write(tmp_path / "docs", {f"{number}.bad": word for number, word in enumerate(words)})
    write(tmp_path / "docs", {"z.txt": "plain"})
    before = children()
    options = IngestionOptions(extraction_seconds=1.0, extraction_memory=256 << 20)
    with IngestionPipeline.open(
        tmp_path / "a.db", embedder=CountingEmbedder(), extractors=[Misbehaving()], options=options
    ) as pipeline:
        result = pipeline.run(FolderSource(tmp_path / "docs", source_id="docs"))
        assert children() == before
    assert result.outcome == "completed"
    failures = {document.document_id: document.failure.code for document in result.documents if document.failure}
    assert failures == {"1.bad": 6102, "3.bad": 6102, "5.bad": 6102, "7.bad": 6103}
    assert result.documents_indexed == 6
    texts = list(contents(tmp_path / "a.db")[0])
    assert len(texts) == 6


def test_the_limits_are_checked() -> None:
    """Limits that no document could keep are refused."""
    for settings in ({"extraction_seconds": 0}, {"extraction_memory": -1}):
        with pytest.raises(QedgeError, match="must be positive"):
            IngestionOptions(**settings)
