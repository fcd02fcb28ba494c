"""What the progress line says."""

from __future__ import annotations

import itertools

import pytest

from qedge_dagster.cli.output import cells
from qedge_dagster.cli.progress import Progress, progress
from qedge_dagster.errors import Failure
from qedge_dagster.pipeline.events import DocumentFailed, DocumentRemoved, DocumentSkipped, WindowEmbedded
from qedge_dagster.pipeline.results import DocumentResult

FAILURE = Failure(6104, "NUL bytes", "replace it")
FAILED = DocumentFailed(DocumentResult("bad.log", "failed", failure=FAILURE), FAILURE, None)


def test_counts_and_rates() -> None:
    """Documents by what became of them, and what that is per second."""
    seconds = itertools.count(0, 4)
    shown = Progress(clock=lambda: float(next(seconds)))
    for event in (
        DocumentSkipped("a.md", b""),
        DocumentSkipped("b.md", b""),
        WindowEmbedded("c.md", 32, 8000, 5),
        FAILED,
        DocumentRemoved("d.md", 3),
    ):
        shown.add(event)
    assert shown.line(200) == (
        "3 documents (0 indexed, 2 unchanged, 1 not indexed, 1 removed) · 0.8 documents/s, 2,000 tokens/s · d.md"
    )


@pytest.mark.parametrize("width", [20, 60, 80, 100, 200])
def test_line_keeps_within_the_width(width: int) -> None:
    """The document gives way first; its end, which tells most, is kept. Control characters are escaped."""
    shown = Progress(clock=lambda: 1.0)
    shown.add(DocumentSkipped("文" * 300 + "\x1b[2J.md", b""))
    line = shown.line(width)
    assert line.isprintable()
    counts = line.split(" · ")[0]
    assert counts == "1 document (0 indexed, 1 unchanged)"
    assert cells(line) <= max(width, cells(" · ".join(line.split(" · ")[:2])))


def test_plain_lines_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    """Where stderr is no terminal, long work says a line every ten seconds, and short work none."""
    now = 0.0
    with progress(quiet=False, clock=lambda: now) as add:
        for second in range(35):
            now = float(second)
            add(DocumentSkipped(f"{second}.md", b""))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["11", "21", "31"]


def test_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    """--quiet says nothing at all."""
    with progress(quiet=True) as add:
        for number in range(10):
            add(DocumentSkipped(f"{number}.md", b""))
    assert capsys.readouterr().err == ""
