"""A tree in a store: in memory, in an S3 server of this process, on the disk, in an archive."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import fsspec

from qedge_dagster import FsspecSource, IngestionPipeline, RunOptions
from qedge_dagster.sources import Source, SourceItem
from tests.pipeline.support import CountingEmbedder

TREE: dict[str, str | bytes] = {
    "a-b.txt": "Between.\n",
    "a/one.md": "# One\n\nThe first.\n",
    "a/deep/two.md": "# Two\n\nThe second.\n",
    "a0.txt": "After the folder.\n",
    "drafts/three.md": "# Three\n\nNot finished.\n",
    "empty.txt": "",
    ".hidden/four.md": "# Four\n\nHidden.\n",
    "~$lock.docx": "owner",
    "Żółć.txt": "Composed.\n",
}


class Store:
    """A tree in some store, and the source over it."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        self.url = url
        self.options = options
        self.filesystem, self.root = fsspec.core.url_to_fs(url, **options)

    def put(self, files: dict[str, str | bytes]) -> None:
        for name, content in files.items():
            content = content if isinstance(content, bytes) else content.encode()
            self.filesystem.pipe_file(f"{self.root}/{name}", content)

    def remove(self, name: str) -> None:
        self.filesystem.rm(f"{self.root}/{name}")

    def source(self, **arguments: Any) -> FsspecSource:
        arguments.setdefault("source_id", "tree")
        return FsspecSource(self.url, storage_options=self.options, **arguments)


def make_zip(path: Path, files: dict[str, str | bytes]) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return f"zip://::{path}"


def ids(source: Source) -> list[str]:
    return [item.document_id for item in source.items() if isinstance(item, SourceItem)]


def facts(source: Source) -> list[tuple[str, str, int | None, bytes]]:
    found: list[tuple[str, str, int | None, bytes]] = []
    for item in source.items():
        assert isinstance(item, SourceItem)
        for _ in range(2):
            with item.open() as stream:
                content = stream.read()
        found.append((item.document_id, item.media_type, item.size_bytes, content))
    return found


def run(database: Path, source: Source, **options: Any) -> Any:
    embedder = CountingEmbedder()
    with IngestionPipeline.open(database, embedder=embedder) as pipeline:
        return pipeline.run(source, options=RunOptions(**options))
