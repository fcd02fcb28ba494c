"""Where the artefacts of a collection lie: one file for each document and stage, named by its data version.

    <root>/<collection>/<stage>/<source hash>-<document hash>-<version>.parquet

A stage's folder is one data set. The version in the name lets the old file and the new one lie side by side until the
database says which of them is current.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from qedge_dagster.errors import QedgeError
from qedge_dagster.hashing import content_hash
from qedge_dagster.state import StageVersions, StateStore

__all__ = ["ARTIFACT_STAGES", "ArtifactFolder", "ArtifactStage", "StagePaths", "default_root", "discard"]

ArtifactStage = Literal["extracted_documents", "document_chunks", "chunk_embeddings"]

#: In the order in which one is made of the other.
ARTIFACT_STAGES: tuple[ArtifactStage, ...] = ("extracted_documents", "document_chunks", "chunk_embeddings")

StagePaths: TypeAlias = "Mapping[ArtifactStage, Path]"

# Readers of data sets pass over names that begin with a dot.
_PARTIAL = ".partial"


def default_root(database: Path) -> Path:
    """Beside the database: where the command line and Dagster keep artefacts unless they are told otherwise."""
    database = database.resolve()
    return database.with_name(f"{database.name}.artifacts")


@dataclass(frozen=True, slots=True)
class ArtifactFolder:
    """The artefacts of one collection below `root`. Needs neither pyarrow nor pandas."""

    root: Path
    collection: str

    def stage(self, stage: ArtifactStage) -> Path:
        return self.root / self.collection / stage

    def paths(self, source_id: str, document_id: str, versions: StageVersions) -> dict[ArtifactStage, Path]:
        """Where the artefacts of these versions belong; each may exist or not."""
        prefix = f"{_source_prefix(source_id)}{content_hash(document_id).hex()}"
        digests = (versions.extracted, versions.chunks, versions.embeddings)
        return {
            stage: self.stage(stage) / f"{prefix}-{digest.hex()}.parquet"
            for stage, digest in zip(ARTIFACT_STAGES, digests, strict=True)
        }

    def write(self, contents: Mapping[Path, memoryview]) -> None:
        """All are written before the first gets its name. Raises `QedgeError` 6207."""
        partial = {path: path.with_name(f".{path.name}{_PARTIAL}") for path in contents}
        try:
            with self._writing():
                for path, data in contents.items():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    partial[path].write_bytes(data)
                for path, temporary in partial.items():
                    os.replace(temporary, path)
        except BaseException:
            discard(partial.values())
            raise

    def sweep(self, state: StateStore, source_id: str) -> int:
        """Remove what a crash has left of this source: files of no current version. Returns how many.

        The caller holds the run lock of the source, else the file of a document that is about to be switched would go.
        """
        return discard(self._outdated(state, source_id))

    def leftover(self, state: StateStore, source_ids: Collection[str]) -> Iterator[Path]:
        """Files of no current version of these sources, and of any other source."""
        for source_id in source_ids:
            yield from self._outdated(state, source_id)
        known = tuple(map(_source_prefix, source_ids))
        for stage in ARTIFACT_STAGES:
            for path in _listed(self.stage(stage)):
                if not path.name.removeprefix(".").startswith(known):
                    yield path

    def _outdated(self, state: StateStore, source_id: str) -> Iterator[Path]:
        current = {
            path
            for document_id, versions in state.all_versions(source_id)
            for path in self.paths(source_id, document_id, versions).values()
        }
        prefix = _source_prefix(source_id)
        for stage in ARTIFACT_STAGES:
            for path in _listed(self.stage(stage)):
                if path.name.removeprefix(".").startswith(prefix) and path not in current:
                    yield path

    def adopt(self, other: ArtifactFolder) -> None:
        """Have the files of `other` here as well. Raises `QedgeError` 6207."""
        for stage in ARTIFACT_STAGES:
            for path in _listed(other.stage(stage)):
                with self._writing():
                    target = self.stage(stage) / path.name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    temporary = target.with_name(f".{target.name}{_PARTIAL}")
                    shutil.copyfile(path, temporary)
                    os.replace(temporary, target)

    def drop(self) -> None:
        shutil.rmtree(self.root / self.collection, ignore_errors=True)

    @contextmanager
    def _writing(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise QedgeError(
                6207,
                f"the artefacts of the stages cannot be written: {error.strerror or type(error).__name__}",
                remedy=f"check that {self.root} has room and may be written, or switch artefacts off",
            ) from error


def discard(paths: Iterable[Path]) -> int:
    """Remove files whose time is over; one that cannot be removed now is left to the next sweep."""
    removed = 0
    for path in paths:
        with suppress(OSError):
            path.unlink()
            removed += 1
    return removed


def _source_prefix(source_id: str) -> str:
    return f"{content_hash(source_id).hex()[:16]}-"


def _listed(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
