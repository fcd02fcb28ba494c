"""The engine's side of the artefacts: written before a document's switch, read back where an extraction can be spared.

A file is never the only copy of anything but the extracted text, and that can be extracted again. So a damaged one is
passed over, and none is synced to the disk: after a power cut the worst is an extraction more.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qedge_dagster.artifacts.files import ArtifactFolder, StagePaths, discard
from qedge_dagster.artifacts.tables import chunk_table, embedding_table, extracted_table, parquet, read_extracted
from qedge_dagster.collection.writer import ChunkRow
from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.state import StageVersions, StateStore

__all__ = ["ArtifactSink"]


class ArtifactSink:
    """Artefacts of the collection that a run writes to. While a rebuild is prepared that is not `current`, the one that
    answers and whose extractions can be reused."""

    def __init__(self, root: Path, state: StateStore, current: StateStore) -> None:
        self.folder = ArtifactFolder(root, state.collection)
        self._current = current
        self._reusable = ArtifactFolder(root, current.collection)

    def source_hash(self, source_id: str, document_id: str) -> bytes | None:
        """The hash of the bytes whose extraction may be at hand."""
        row = self._current.document(source_id, document_id)
        return row.content_hash if row is not None else None

    def extracted(self, source_id: str, document_id: str, inputs: bytes) -> ExtractedDocument | None:
        """The document as it was extracted from the same `inputs` before; None where there is no sound artefact."""
        versions = self._current.versions(source_id, document_id)
        if versions is None:
            return None
        path = self._reusable.paths(source_id, document_id, versions)["extracted_documents"]
        try:
            document = read_extracted(path, inputs)
            sound = document is not None and document.document_id == document_id
            return document if document is not None and sound and document.version() == versions.extracted else None
        except Exception:  # a damaged file makes pyarrow raise almost anything
            return None

    def write(
        self,
        source_id: str,
        document: ExtractedDocument,
        rows: Sequence[ChunkRow],
        vectors: Sequence[bytes],
        dimensions: int,
        versions: StageVersions,
        inputs: bytes,
    ) -> StagePaths:
        """Write all stages of a document that is about to be switched. `vectors` are float32, one for each of `rows`.

        A file of the same version is replaced: versions leave out what does not matter to the next stage, such as
        the extractor's name. Raises `QedgeError` 6207.
        """
        document_id = document.document_id
        paths = self.folder.paths(source_id, document_id, versions)
        tables = (
            extracted_table(source_id, document, inputs),
            chunk_table(source_id, document_id, rows),
            embedding_table(source_id, document_id, rows, vectors, dimensions),
        )
        self.folder.write(dict(zip(paths.values(), map(parquet, tables), strict=True)))
        return paths

    def discard(
        self, source_id: str, document_id: str, versions: StageVersions | None, kept: StagePaths | None = None
    ) -> None:
        """Remove the files of `versions` that the database no longer names, except those `kept`."""
        if versions is not None:
            still = set((kept or {}).values())
            discard(path for path in self.folder.paths(source_id, document_id, versions).values() if path not in still)
