"""A small ingest of changed documents, and what may be found of it after a fault."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from qedge_dagster import ChunkingOptions, FolderSource, IngestionOptions, RunResult
from qedge_dagster.collection.connection import Synchronous
from qedge_dagster.pipeline.events import Event
from tests.pipeline.support import CountingEmbedder, contents, ingest, prose, write

__all__ = ["OPTIONS", "Rows", "Scene", "by_document", "copy_database", "run"]

#: What is stored of each document: chunks with their vectors, and the versions of its stages. Not its state, which may
#: say that a change has failed.
Rows = dict[object, set[tuple[object, ...]]]

# Small chunks and windows, so that a document has several of both, and windows are staged.
OPTIONS = IngestionOptions(chunking=ChunkingOptions(max_tokens=64, overlap=0), write_batch_size=4)


@dataclass(frozen=True)
class Scene:
    """Editions of a folder, and a database that one uninterrupted run has made of each."""

    folders: list[Path]
    references: list[Path]

    @classmethod
    def make(cls, root: Path, editions: int) -> Scene:
        folders = [_edition(root / f"docs{number}", number) for number in range(editions)]
        references = [root / "references" / f"{number}.db" for number in range(editions)]
        references[0].parent.mkdir()
        for number, reference in enumerate(references):
            run(reference, folders[number])
        return cls(folders, references)


def _edition(docs: Path, number: int) -> Path:
    """Of three documents one changes by half, one grows at its top, one stays; one comes and one goes."""
    return write(
        docs,
        {
            "edited.txt": "\n\n".join(prose(1, 8) + prose(100 + number, 8)),
            "grown.txt": "\n\n".join(prose(200 + number, 1) * min(number, 1) + prose(2, 6)),
            "stays.txt": "\n\n".join(prose(3, 2)),
            f"{'xy'[number % 2]}.txt": "\n\n".join(prose(300 + number, 3)),
        },
    )


def run(
    database: Path,
    docs: Path,
    *,
    synchronous: Synchronous = "normal",
    on_event: Callable[[Event], None] | None = None,
    seconds_per_call: float = 0.0,
) -> RunResult:
    options = replace(OPTIONS, synchronous=synchronous)
    embedder = CountingEmbedder(seconds_per_call=seconds_per_call)
    return ingest(database, FolderSource(docs, source_id="s"), embedder, options=options, on_event=on_event)


def by_document(database: Path) -> Rows:
    rows: Rows = {}
    chunks, _, versions, _ = contents(database)
    for table in (chunks, versions):
        for row in table:
            rows.setdefault(row[2], set()).add(row)
    return rows


def copy_database(source: Path, target: Path) -> Path:
    for path in target.parent.glob(f"{target.name}*"):
        path.unlink()
    shutil.copyfile(source, target)
    return target
