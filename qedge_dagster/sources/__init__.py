"""Where documents come from."""

from __future__ import annotations

from qedge_dagster.sources.base import Source, SourceItem, UnlistedPart
from qedge_dagster.sources.files import FilesSource
from qedge_dagster.sources.folder import FolderSource
from qedge_dagster.sources.items import ItemsSource, StreamSource, reopenable
from qedge_dagster.sources.selected import SelectedDocuments

__all__ = [
    "FilesSource",
    "FolderSource",
    "ItemsSource",
    "SelectedDocuments",
    "Source",
    "SourceItem",
    "StreamSource",
    "UnlistedPart",
    "reopenable",
]
