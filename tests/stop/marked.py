"""`qedge`, as it is but for a note of when each phase of a run begins and ends:
`python -m tests.stop.marked ARGUMENTS`, with the file for the notes in QEDGE_TEST_MARKS."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.writer import CollectionWriter
from qedge_dagster.embedding import onnx
from qedge_dagster.pipeline import ahead, document, pipeline

_PHASES: tuple[tuple[str, Any, str], ...] = (
    ("hash", document, "hash_item"),
    ("hash", ahead, "hash_item"),
    ("extract", document.DocumentProcessor, "_extract"),
    ("embed", onnx._Graph, "run"),  # pyright: ignore[reportPrivateUsage]
    ("write", document.DocumentProcessor, "_switch"),
    ("winding", pipeline, "wind_down"),
    ("merge", CollectionWriter, "merge_full_text"),
    ("checkpoint", Database, "checkpoint"),
)


class Mark(NamedTuple):
    """`at` is of the monotonic clock, which all processes of a machine share."""

    phase: str
    begins: bool
    at: float


def mark_phases() -> None:
    """Have this process write its marks, if a file for them is named."""
    path = os.environ.get("QEDGE_TEST_MARKS")
    if path is None:
        return
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def marked(phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            os.write(file, f"{phase} begin {time.monotonic()!r}\n".encode())
            try:
                return function(*args, **options)
            finally:
                os.write(file, f"{phase} end {time.monotonic()!r}\n".encode())

        return call

    for phase, owner, name in _PHASES:
        setattr(owner, name, marked(phase, getattr(owner, name)))


def read_marks(path: Path) -> list[Mark]:
    if not path.exists():
        return []
    lines = [line.split() for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [Mark(phase, what == "begin", float(at)) for phase, what, at in lines]


if __name__ == "__main__":
    from qedge_dagster.cli import main

    mark_phases()
    main()
