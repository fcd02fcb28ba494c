"""Runs over documents whose extraction goes wrong in every way: each costs itself."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest

from qedge_dagster import FolderSource, IngestionPipeline
from qedge_dagster.errors import QedgeError
from qedge_dagster.pipeline import IngestionOptions
from qedge_dagster.pipeline.events import DocumentFailed, Event
from tests.extractors.isolated import Misbehaving
from tests.extractors.processes import children
from tests.pipeline.support import CountingEmbedder, contents, write

WORDS = [
    "first",
    "sleep",
    "second",
    "segfault",
    "third",
    "allocate",
    "fourth",
    "print",
    "hang",
    "fifth",
    "6103",
    "last",
]
REASONS = {
    "sleep": (6102, "took longer than 1 s"),
    "segfault": (6102, "SIGSEGV"),
    "allocate": (6102, "more than 256 MiB"),
    "hang": (6102, "took longer than 1 s"),
    "6103": (6103, "as told"),
}


def test_a_run_among_misbehaving_parsers(tmp_path: Path) -> None:
    """Those that hang, crash, or eat memory fail with 6102 and the reason, the others are indexed, as is the one whose
    parser prints; no process is left, and the run completes. How long each took is printed."""
    write(tmp_path / "docs", {f"{number:02}.bad": word for number, word in enumerate(WORDS)})
    write(tmp_path / "docs", {"z.txt": "plain"})
    before = children()
    events: list[tuple[float, Event]] = []
    with IngestionPipeline.open(
        tmp_path / "a.db",
        embedder=CountingEmbedder(),
        extractors=[Misbehaving()],
        options=IngestionOptions(extraction_seconds=1.0, extraction_memory=256 << 20),
    ) as pipeline:
        source = FolderSource(tmp_path / "docs", source_id="docs")
        result = pipeline.run(source, on_event=lambda event: events.append((time.monotonic(), event)))
        assert children() == before
    for (last, _), (now, event) in pairwise(events):
        if isinstance(event, DocumentFailed):
            word = WORDS[int(event.result.document_id[:2])]
            print(f"{word:10}{now - last:6.2f} s  {event.failure.code} {event.failure.message}")
    assert result.outcome == "completed"
    failures = {
        WORDS[int(document.document_id[:2])]: document.failure for document in result.documents if document.failure
    }
    assert failures.keys() == REASONS.keys()
    for word, (code, reason) in REASONS.items():
        assert failures[word].code == code
        assert reason in failures[word].message
    assert result.documents_indexed == len(contents(tmp_path / "a.db")[0]) == len(WORDS) - len(REASONS) + 1


def test_the_limits_are_checked() -> None:
    """Limits that no document could keep are refused."""
    for settings in ({"extraction_seconds": 0}, {"extraction_memory": -1}):
        with pytest.raises(QedgeError, match="must be positive"):
            IngestionOptions(**settings)
