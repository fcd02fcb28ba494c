"""What a stage made of a document, as an Arrow table and back. All files of a stage share one schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from qedge_dagster.artifacts.files import ArtifactStage
from qedge_dagster.chunking.base import embed_text
from qedge_dagster.collection.arrow import ArrowSchema, ArrowTable, column_fields, embedding_field, vector_column
from qedge_dagster.collection.chunk import COLUMNS, StoredChunk
from qedge_dagster.collection.writer import ChunkRow
from qedge_dagster.documents import DocumentBlock, ExtractedDocument

__all__ = [
    "chunk_table",
    "embedding_table",
    "extracted_table",
    "parquet",
    "read_extracted",
    "stage_schema",
    "stored_chunk_table",
    "stored_embedding_table",
]

# What the collection keeps of a chunk, but for the time of its writing; named as there.
_CHUNK_COLUMNS = tuple(column for column in COLUMNS if column != "created_utc")
_EMBEDDING_COLUMNS = ("key", "source_id", "document_id", "ordinal", "content_hash")

_INPUTS = b"qedge.inputs"


def stage_schema(stage: ArtifactStage, dimensions: int) -> ArrowSchema:
    import pyarrow as pa

    if stage == "chunk_embeddings":
        return pa.schema([*column_fields(_EMBEDDING_COLUMNS), embedding_field(dimensions)])
    if stage == "document_chunks":
        return pa.schema(
            [
                *column_fields(_CHUNK_COLUMNS),
                pa.field("headings", pa.list_(pa.string())),
                pa.field("embed_text", pa.string()),  # null where it is the text
            ]
        )
    block = pa.struct(
        [
            ("kind", pa.string()),
            ("start", pa.int64()),
            ("end", pa.int64()),
            ("heading_level", pa.int64()),
            ("page", pa.int64()),
        ]
    )
    return pa.schema(
        [
            *column_fields(("source_id", "document_id", "text")),
            pa.field("blocks", pa.list_(block)),
            pa.field("metadata", pa.string()),
            pa.field("page_count", pa.int64()),
            pa.field("has_text_layer", pa.bool_()),
            pa.field("media_type", pa.string()),
            pa.field("extractor_id", pa.string()),
            pa.field("extractor_version", pa.int64()),
            pa.field("warnings", pa.list_(pa.string())),
        ]
    )


def extracted_table(source_id: str, document: ExtractedDocument, inputs: bytes) -> ArrowTable:
    """One row. `inputs` stands for all that the extraction depended on, and is kept in the schema's metadata."""
    import pyarrow as pa

    row: dict[str, Any] = {
        "source_id": source_id,
        "document_id": document.document_id,
        "text": document.text,
        "blocks": [
            {"kind": b.kind, "start": b.start, "end": b.end, "heading_level": b.heading_level, "page": b.page}
            for b in document.blocks
        ],
        # What JSON has no form for is shown as text; such a document is not read back but extracted again.
        "metadata": json.dumps(dict(document.metadata), default=str),
        "page_count": document.page_count,
        "has_text_layer": document.has_text_layer,
        "media_type": document.media_type,
        "extractor_id": document.extractor_id,
        "extractor_version": document.extractor_version,
        "warnings": list(document.warnings),
    }
    schema = stage_schema("extracted_documents", 0).with_metadata({_INPUTS: inputs.hex().encode()})
    return pa.Table.from_pylist([row], schema=schema)


def read_extracted(path: Path, inputs: bytes) -> ExtractedDocument | None:
    """The document in an artefact, if it was made from the same `inputs`. Raises whatever a damaged file makes pyarrow
    raise."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        if (file.schema_arrow.metadata or {}).get(_INPUTS) != inputs.hex().encode():
            return None
        (row,) = file.read().to_pylist()
    return ExtractedDocument(
        row["document_id"],
        row["extractor_id"],
        row["extractor_version"],
        row["media_type"],
        row["text"],
        tuple(DocumentBlock(**block) for block in row["blocks"]),
        json.loads(row["metadata"]),
        row["page_count"],
        row["has_text_layer"],
        tuple(row["warnings"]),
    )


def chunk_table(source_id: str, document_id: str, rows: Sequence[ChunkRow]) -> ArrowTable:
    return _chunk_table(
        (
            row.key,
            source_id,
            document_id,
            row.draft.ordinal,
            row.draft.text,
            row.draft.breadcrumb,
            row.content_hash,
            row.draft.char_start,
            row.draft.char_end,
            row.draft.token_count,
            row.draft.page,
            row.draft.kind,
            row.extractor_id,
            row.media_type,
            list(row.draft.heading_path),
            None if row.draft.embed_text == row.draft.text else row.draft.embed_text,
        )
        for row in rows
    )


def stored_chunk_table(chunks: Iterable[StoredChunk]) -> ArrowTable:
    """The same from the collection's rows. Headings that did not fit the breadcrumb are missing."""
    return _chunk_table(
        (
            chunk.key,
            chunk.source_id,
            chunk.document_id,
            chunk.ordinal,
            chunk.text,
            chunk.breadcrumb,
            chunk.content_hash,
            chunk.char_start,
            chunk.char_end,
            chunk.token_count,
            chunk.page,
            chunk.block_kind,
            chunk.extractor_id,
            chunk.media_type,
            list(chunk.heading_path),
            embed_text(chunk.breadcrumb, chunk.text) if chunk.breadcrumb else None,
        )
        for chunk in chunks
    )


def _chunk_table(rows: Iterable[tuple[object, ...]]) -> ArrowTable:
    return _table(stage_schema("document_chunks", 0), list(rows))


def embedding_table(
    source_id: str, document_id: str, rows: Sequence[ChunkRow], vectors: Sequence[bytes], dimensions: int
) -> ArrowTable:
    keys = [(row.key, source_id, document_id, row.draft.ordinal, row.content_hash) for row in rows]
    return stored_embedding_table(keys, vectors, dimensions)


def stored_embedding_table(keys: Sequence[tuple[object, ...]], vectors: Sequence[bytes], dimensions: int) -> ArrowTable:
    """`keys` hold key, source id, document id, ordinal and content hash."""
    import pyarrow as pa

    schema = stage_schema("chunk_embeddings", dimensions)
    named = _table(pa.schema(list(schema)[:-1]), keys)
    return pa.Table.from_arrays([*named.columns, vector_column(vectors, dimensions)], schema=schema)


def _table(schema: ArrowSchema, rows: Sequence[tuple[object, ...]]) -> ArrowTable:
    import pyarrow as pa

    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def parquet(table: ArrowTable) -> memoryview:
    """The bytes of a file that holds `table`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    # Statistics would repeat whole texts, and a dictionary of distinct floats is longer than the floats.
    pq.write_table(table, buffer, compression="zstd", use_dictionary=False, write_statistics=False)
    return memoryview(buffer.getvalue())
