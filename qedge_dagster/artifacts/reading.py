"""A stage of many documents as one Arrow table: from current artefacts, or else from the collection."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from qedge_dagster.artifacts.files import ArtifactFolder, ArtifactStage
from qedge_dagster.artifacts.tables import stage_schema, stored_chunk_table, stored_embedding_table
from qedge_dagster.collection.arrow import ArrowSchema, ArrowTable
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.schema import CollectionSpec
from qedge_dagster.collection.snapshot import open_snapshot
from qedge_dagster.collection.stored import stored_chunks, stored_vectors
from qedge_dagster.errors import QedgeError
from qedge_dagster.state import StageVersions, StateStore

__all__ = ["read_stage"]


def read_stage(
    database_path: Path,
    root: Path | None,
    collection: str,
    source_id: str,
    stage: ArtifactStage,
    document_ids: Collection[str],
) -> ArrowTable:
    """One stage of those of `document_ids` that are indexed, in order of document and ordinal; others have no rows.

    Raises `QedgeError` 6002 where there is no such collection, or where the text of a document is asked for that has
    no artefact: the collection holds chunks and vectors, but not whole texts.
    """
    import pyarrow as pa

    wanted = frozenset(document_ids)
    with open_snapshot(database_path, collection) as (database, spec):
        state = StateStore(database, collection)
        folder = ArtifactFolder(root, collection) if root is not None else None
        indexed = {row.document_id for _, row in state.documents(source_id) if row.status == "indexed"}
        schema = stage_schema(stage, spec.dimensions)
        tables: list[ArrowTable] = []
        for document_id, versions in state.all_versions(source_id):
            if document_id in wanted and document_id in indexed:
                table = _artifact(folder, source_id, document_id, versions, stage, schema)
                tables.append(_stored(database, spec, source_id, document_id, stage) if table is None else table)
    return pa.concat_tables([schema.empty_table(), *tables])


def _artifact(
    folder: ArtifactFolder | None,
    source_id: str,
    document_id: str,
    versions: StageVersions,
    stage: ArtifactStage,
    schema: ArrowSchema,
) -> ArrowTable | None:
    """None where the file is missing, damaged or of another schema."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if folder is None:
        return None
    try:
        with pq.ParquetFile(folder.paths(source_id, document_id, versions)[stage]) as file:
            table = file.read().replace_schema_metadata(None)
    except (OSError, pa.ArrowException):
        return None
    return table if table.schema.equals(schema) else None


def _stored(
    database: Database, spec: CollectionSpec, source_id: str, document_id: str, stage: ArtifactStage
) -> ArrowTable:
    if stage == "extracted_documents":
        raise QedgeError(
            6002,
            f"the text of {document_id!r} has no artefact",
            remedy="ingest the document again with force and with artefacts on",
        )
    if stage == "document_chunks":
        return stored_chunk_table(stored_chunks(database, spec.name, source_id, document_id))
    rows = list(stored_vectors(database, spec.name, source_id, document_id))
    return stored_embedding_table([row[:-1] for row in rows], [row[-1] for row in rows], spec.dimensions)
