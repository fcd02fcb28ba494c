"""qedge-dagster: folders of documents in, one SQLite file with vector, keyword and hybrid search out.

Names are loaded on first use: `import qedge_dagster` itself imports no other library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qedge_dagster.lazy import names_of

if TYPE_CHECKING:
    from qedge_dagster.chunking.base import ChunkingOptions
    from qedge_dagster.collection import Collection, Filter, Hit, StoredChunk
    from qedge_dagster.documents import DocumentBlock, ExtractedDocument, media_type_for
    from qedge_dagster.embedding import CallableEmbedder, OnnxEmbedder
    from qedge_dagster.embedding.profiles import ModelProfile
    from qedge_dagster.errors import Failure, QedgeError
    from qedge_dagster.pipeline import IngestionPipeline
    from qedge_dagster.pipeline.options import IngestionBudget, IngestionOptions, RunOptions
    from qedge_dagster.pipeline.results import DocumentResult, RunResult
    from qedge_dagster.sources import FilesSource, FolderSource, ItemsSource, SourceItem, StreamSource
    from qedge_dagster.sources.fsspec import FsspecSource

__version__ = "0.1.0"

_HOMES = {
    "CallableEmbedder": "embedding",
    "ChunkingOptions": "chunking.base",
    "Collection": "collection",
    "DocumentBlock": "documents",
    "DocumentResult": "pipeline.results",
    "ExtractedDocument": "documents",
    "Failure": "errors",
    "FilesSource": "sources",
    "Filter": "collection",
    "FolderSource": "sources",
    "FsspecSource": "sources.fsspec",
    "Hit": "collection",
    "IngestionBudget": "pipeline.options",
    "IngestionOptions": "pipeline.options",
    "IngestionPipeline": "pipeline",
    "ItemsSource": "sources",
    "ModelProfile": "embedding.profiles",
    "OnnxEmbedder": "embedding",
    "QedgeError": "errors",
    "RunOptions": "pipeline.options",
    "RunResult": "pipeline.results",
    "SourceItem": "sources",
    "StoredChunk": "collection",
    "StreamSource": "sources",
    "media_type_for": "documents",
}

__all__ = [
    "CallableEmbedder",
    "ChunkingOptions",
    "Collection",
    "DocumentBlock",
    "DocumentResult",
    "ExtractedDocument",
    "Failure",
    "FilesSource",
    "Filter",
    "FolderSource",
    "FsspecSource",
    "Hit",
    "IngestionBudget",
    "IngestionOptions",
    "IngestionPipeline",
    "ItemsSource",
    "ModelProfile",
    "OnnxEmbedder",
    "QedgeError",
    "RunOptions",
    "RunResult",
    "SourceItem",
    "StoredChunk",
    "StreamSource",
    "__version__",
    "media_type_for",
]

__getattr__ = names_of(__name__, _HOMES)
