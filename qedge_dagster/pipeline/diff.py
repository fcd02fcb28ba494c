"""Which chunks of a document are new, gone, or only moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from qedge_dagster.chunking.base import ChunkDraft
from qedge_dagster.collection.writer import ChunkRow, StoredRow
from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.embedding.base import Embedder
from qedge_dagster.hashing import chunk_key, hash_fields
from qedge_dagster.state import StageVersions

__all__ = ["ChunkDiff", "chunks_version", "diff_chunks", "identify", "stage_versions"]


@dataclass(frozen=True, slots=True)
class ChunkDiff:
    """`repaired` are those of the `unchanged` whose columns besides key and text have moved."""

    added: list[ChunkRow]
    removed: list[int]
    repaired: list[tuple[int, ChunkRow]]
    unchanged: int


def identify(source_id: str, document: ExtractedDocument, drafts: Sequence[ChunkDraft]) -> list[ChunkRow]:
    """Give each chunk its content hash and key. Equal chunks of one document are told apart by counting."""
    seen: Counter[bytes] = Counter()
    rows: list[ChunkRow] = []
    for draft in drafts:
        digest = draft.content_hash
        key = chunk_key(source_id, document.document_id, digest, seen[digest])
        seen[digest] += 1
        rows.append(ChunkRow(key, digest, draft, document.extractor_id, document.media_type))
    return rows


def diff_chunks(stored: Iterable[StoredRow], rows: Sequence[ChunkRow]) -> ChunkDiff:
    old = {row.key: row for row in stored}
    added: list[ChunkRow] = []
    repaired: list[tuple[int, ChunkRow]] = []
    unchanged = 0
    for row in rows:
        before = old.pop(row.key, None)
        if before is None:
            added.append(row)
            continue
        unchanged += 1
        if before.columns != row.mutable_columns():
            repaired.append((before.rowid, row))
    return ChunkDiff(added, [row.rowid for row in old.values()], repaired, unchanged)


def chunks_version(rows: Iterable[ChunkRow]) -> bytes:
    """Data version of the chunk stage."""
    return hash_fields(
        (row.content_hash.hex(), row.draft.ordinal, row.draft.char_start, row.draft.char_end, row.draft.page)
        for row in rows
    )


def stage_versions(extracted: bytes, rows: Sequence[ChunkRow], embedder: Embedder, recipe_hash: bytes) -> StageVersions:
    """The data versions of all stages; `extracted` is that of the text."""
    embeddings = (embedder.profile.id, embedder.model_hash, *(row.content_hash.hex() for row in rows))
    places = ((row.key, row.draft.ordinal, row.draft.char_start, row.draft.char_end) for row in rows)
    return StageVersions(
        extracted, chunks_version(rows), hash_fields(embeddings), hash_fields((*places, recipe_hash.hex()))
    )
