"""A source, a database and the artefacts of its stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq

from qedge_dagster import FolderSource, IngestionOptions, RunOptions
from qedge_dagster.artifacts.files import ArtifactFolder
from qedge_dagster.collection.chunk import COLUMNS
from qedge_dagster.collection.connection import Database
from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.extractors import ExtractionContext, TextExtractor
from qedge_dagster.pipeline import IngestionPipeline
from qedge_dagster.pipeline.events import Event
from qedge_dagster.pipeline.results import RunResult
from qedge_dagster.sources import SourceItem
from qedge_dagster.state import StateStore
from tests.pipeline.support import CountingEmbedder

# The time that a row was made is no matter of the stage.
_COLUMNS = [column for column in COLUMNS if column not in ("key", "created_utc")]

STAGES = ("extracted_documents", "document_chunks", "chunk_embeddings")


class CountingExtractor:
    """The text extractor, counting its calls by document. Takes the built-in one's place by its id."""

    _text = TextExtractor()
    id, version, variant = _text.id, _text.version, _text.variant
    extensions, media_types = _text.extensions, _text.media_types

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def can_extract(self, item: SourceItem) -> bool:
        return self._text.can_extract(item)

    def extract(self, item: SourceItem, context: ExtractionContext) -> ExtractedDocument:
        self.calls[item.document_id] += 1
        return self._text.extract(item, context)


class Index:
    """A folder of documents, and the database and artefacts made of them."""

    def __init__(self, root: Path) -> None:
        self.docs, self.database, self.artifacts = root / "docs", root / "x.db", root / "x.db.artifacts"
        self.docs.mkdir()
        self.embedder, self.extractor = CountingEmbedder(), CountingExtractor()
        self.source = FolderSource(self.docs, source_id="s")

    def open(self, options: IngestionOptions | None = None, *, artifacts: bool = True) -> IngestionPipeline:
        return IngestionPipeline.open(
            self.database,
            embedder=self.embedder,
            extractors=[self.extractor],
            options=options,
            artifacts=self.artifacts if artifacts else None,
        )

    def run(
        self,
        options: IngestionOptions | None = None,
        run: RunOptions | None = None,
        *,
        artifacts: bool = True,
        on_event: Callable[[Event], None] | None = None,
    ) -> RunResult:
        with self.open(options, artifacts=artifacts) as pipeline:
            return pipeline.run(self.source, options=run, on_event=on_event)

    def files(self, stage: str, collection: str = "chunks") -> set[str]:
        folder = self.artifacts / collection / stage
        return {path.name for path in folder.iterdir()} if folder.exists() else set()

    def expected(self) -> dict[str, set[str]]:
        """The names of the files that the state's versions call for."""
        names: dict[str, set[str]] = {stage: set() for stage in STAGES}
        folder = ArtifactFolder(self.artifacts, "chunks")
        with closing(Database(self.database, read_only=True)) as opened:
            state = StateStore(opened, "chunks")
            for source_id in state.source_ids():
                for document_id, versions in state.all_versions(source_id):
                    for stage, path in folder.paths(source_id, document_id, versions).items():
                        names[stage].add(path.name)
        return names

    def check(self) -> None:
        """The files are those that the state calls for, no more and no fewer; and they hold the collection's rows."""
        assert {stage: self.files(stage) for stage in STAGES} == self.expected()
        self.check_contents()

    def check_contents(self) -> None:
        """What the files of the current versions hold is what the collection does."""
        expected = self.expected()
        folder = self.artifacts / "chunks"
        keys: dict[str, tuple[object, ...]] = {}
        for name in expected["document_chunks"]:
            for row in pq.read_table(folder / "document_chunks" / name).to_pylist():
                assert row["key"] not in keys
                keys[row["key"]] = tuple(row[column] for column in _COLUMNS)
        vectors: dict[str, list[float]] = {}
        for name in expected["chunk_embeddings"]:
            for row in pq.read_table(folder / "chunk_embeddings" / name).to_pylist():
                vectors[row["key"]] = row["embedding"]
        with closing(Database(self.database, read_only=True)) as opened:
            import numpy as np

            stored = {}
            for key, vector, *columns in opened.connection.execute(
                f"SELECT c.key, v.embedding, {', '.join(_COLUMNS)} FROM chunks AS c"
                " JOIN chunks_vec AS v ON v.rowid = c._rowid"
            ):
                stored[key] = tuple(columns)
                assert vectors[key] == np.frombuffer(vector, dtype=np.float32).tolist()
        assert keys == stored
        assert set(vectors) == set(stored)
