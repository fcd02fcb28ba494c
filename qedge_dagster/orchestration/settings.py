"""One set of ingestion assets as plain data, from YAML or from a command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

from dagster import Definitions, Resolvable
from pydantic import BaseModel, Field, model_validator

from qedge_dagster.hashing import hash_fields
from qedge_dagster.orchestration.definitions import build_ingestion_definitions
from qedge_dagster.orchestration.resource import IngestionResource, PipelineSettings
from qedge_dagster.orchestration.target import IngestionTarget
from qedge_dagster.sources import FilesSource, FolderSource, Source
from qedge_dagster.sources.fsspec import FsspecSource

__all__ = ["IngestionSettings", "SourceSettings"]

_PATHS = ("database", "model_folder", "artifacts")


class SourceSettings(BaseModel, Resolvable):
    """A folder, listed files, or a store that fsspec knows."""

    folder: str | None = Field(default=None, description="Folder with the documents.")
    files: list[str] = Field(default=[], description="Files by name, instead of a folder.")
    root: str | None = Field(
        default=None, description="Folder below which `files` are looked for; their names as listed are their ids."
    )
    url: str | None = Field(
        default=None, description="URL of a store instead of a folder, such as s3://bucket/prefix; extra [fsspec]."
    )
    storage_options: dict[str, Any] = Field(
        default={}, description="What fsspec is given with `url`; secrets from the environment, by {{ env.NAME }}."
    )
    pattern: list[str] | str = Field(default="*", description="Globs of the files to take, such as '*.md'.")
    exclude: list[str] | str = Field(default=[], description="Globs of the files and folders to leave out.")
    include_hidden: bool = Field(default=False, description="Take hidden files and folders too.")
    id: str | None = Field(
        default=None,
        min_length=1,
        description="Name of the source, which must stay the same from run to run; by default the path of the folder,"
        " from the root of the project where it lies in one.",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> SourceSettings:
        if sum(map(bool, (self.folder, self.files, self.url))) != 1:
            raise ValueError("a source is either a folder or files or a url")
        return self

    def source(self, root: Path) -> Source:
        """Relative paths are below `root`. Raises `QedgeError` 6005 or 6055."""
        if self.url:
            return FsspecSource(
                self.url,
                self.pattern,
                exclude=self.exclude,
                source_id=self.id,
                include_hidden=self.include_hidden,
                storage_options=self.storage_options,
            )
        if not self.folder:
            return FilesSource(self.files, self.id or "files", root=root / (self.root or ""))
        return FolderSource(
            root / self.folder,
            self.pattern,
            exclude=self.exclude,
            source_id=self.id,
            include_hidden=self.include_hidden,
        )


class IngestionSettings(PipelineSettings, Resolvable):
    """Source, collection and pipeline of one target, and what runs by itself.

    A subclass that sets `resource_type` brings an embedder, extractors or options of its own.
    """

    resource_type: ClassVar[type[IngestionResource]] = IngestionResource

    source: SourceSettings
    collection: str = Field(default="chunks", description="Name of the collection, and prefix of the asset keys.")
    name: str | None = Field(default=None, description="Tells several sources of one collection apart.")
    schedule: str | None = Field(
        default="0 3 * * *", description="Cron expression of the pass that reads everything; null for none."
    )
    execution_timezone: str | None = Field(default=None, description="Time zone of the schedule; UTC by default.")
    sensor_interval: int = Field(default=30, description="Seconds between two looks of the sensor at the source.")
    automatic: bool = Field(default=True, description="Whether sensor and schedule run without being switched on.")

    def target(self, root: Path) -> IngestionTarget:
        source = self.source.source(root)
        key = hash_fields((self.database, self.collection, source.source_id)).hex()[:12]
        return IngestionTarget(source, self.collection, self.name, resource_key=f"ingestion_{key}")

    def resource(self, root: Path, kind: type[IngestionResource] | None = None) -> IngestionResource:
        """`kind`, by default `resource_type`, may be a subclass that follows what a run does."""
        settings = self.model_dump(include=set(PipelineSettings.model_fields))
        for path in _PATHS:
            if settings[path]:
                settings[path] = str(root / settings[path])
        return (kind or self.resource_type)(**settings)

    def relative_to(self, root: Path, folder: Path) -> IngestionSettings:
        """The same with paths that are relative to `root`, where these are relative to `folder`. A source below `root`
        has ids that do not depend on where `root` lies."""

        def path(given: str) -> str:
            full = os.path.normpath(folder / given)
            return Path(os.path.relpath(full, root)).as_posix() if Path(full).is_relative_to(root) else full

        source = self.source.model_copy()
        if source.root:
            source.root = path(source.root)
        else:
            source.files = [path(file) for file in source.files]
        if source.folder:
            source.folder = path(source.folder)
            source.id = source.id or (None if os.path.isabs(source.folder) else source.folder)
        others = {name: path(given) for name in _PATHS if (given := getattr(self, name))}
        return self.model_copy(update={"source": source, **others})

    def definitions(self, root: Path) -> Definitions:
        """Everything for Dagster; relative paths are below `root`."""
        return build_ingestion_definitions(
            self.target(root),
            self.resource(root),
            schedule=self.schedule,
            execution_timezone=self.execution_timezone,
            sensor_interval=self.sensor_interval,
            automatic=self.automatic,
        )
