"""Whether the ingestion state of a collection agrees with its rows, and can be read at all."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

import apsw

from qedge_dagster.collection.findings import Finding
from qedge_dagster.collection.schema import CollectionSpec

__all__ = [
    "STATE_CHECKS",
    "check_state",
    "damaged_notes",
    "known_sources",
    "leftover_sources",
    "names_without_tables",
    "unusable_staged",
]

_EXAMPLES = 5

_OF_ROWS = "(SELECT count(*) FROM {name} AS c WHERE c.source_id = d.source_id AND c.document_id = d.document_id)"

#: Documents by what is wrong with their state: source id and document id. `?1` is the collection.
STATE_CHECKS = {
    "state_damaged": (
        "SELECT source_id, document_id FROM qedge_ingest_document WHERE collection = ?1"
        " AND (content_hash IS NOT NULL AND (typeof(content_hash) <> 'blob' OR length(content_hash) <> 16)"
        " OR recipe_hash IS NOT NULL AND (typeof(recipe_hash) <> 'blob' OR length(recipe_hash) <> 16))"
    ),
    "state_disagrees": (
        "SELECT source_id, document_id FROM qedge_ingest_document AS d"
        f" WHERE collection = ?1 AND chunk_count IS NOT {_OF_ROWS}"
    ),
    "state_missing": (
        "SELECT source_id, document_id FROM {name} WHERE ?1 IS NOT NULL"
        " EXCEPT SELECT source_id, document_id FROM qedge_ingest_document WHERE collection = ?1"
    ),
    "versions_wrong": (
        "SELECT source_id, document_id FROM qedge_ingest_version AS v WHERE collection = ?1 AND"
        " (min(length(extracted), length(chunks), length(embeddings), length(collection_rows)) <> 16"
        " OR max(length(extracted), length(chunks), length(embeddings), length(collection_rows)) <> 16"
        " OR NOT EXISTS (SELECT 1 FROM qedge_ingest_document AS d WHERE d.collection = v.collection"
        " AND d.source_id = v.source_id AND d.document_id = v.document_id))"
    ),
}


def check_state(connection: apsw.Connection, spec: CollectionSpec) -> Iterator[Finding]:
    name = spec.name
    for kind, query in STATE_CHECKS.items():
        count = 0
        examples: list[str] = []
        for _, document_id in connection.execute(query.format(name=name), (name,)):
            count += 1
            if len(examples) < _EXAMPLES:
                examples.append(document_id)
        if count:
            yield Finding(kind, name, count, examples=tuple(examples))
    notes = damaged_notes(connection, name)
    if f"{name}/model" in notes:
        yield Finding("model_damaged", name)
        notes.remove(f"{name}/model")
    if notes:
        yield Finding("notes_damaged", name, len(notes))
    unusable = sum(1 for _ in unusable_staged(connection, spec))
    if unusable:
        yield Finding("staged_damaged", name, unusable)
    gone = leftover_sources(connection, name)
    if gone:
        staged = sum(gone.values())
        yield Finding("staged_leftover", name, staged, examples=tuple(list(gone)[:_EXAMPLES]))


def damaged_notes(connection: apsw.Connection, name: str) -> list[str]:
    """Keys of what the state keeps in JSON and no longer is any, or lacks what belongs into it."""
    damaged: list[str] = []
    for key, value in connection.execute(
        "SELECT key, value FROM qedge_ingest_meta WHERE substr(key, 1, length(?1)) = ?1", (f"{name}/",)
    ):
        note = key.removeprefix(f"{name}/").partition("/")[0]
        try:
            content = json.loads(value)
        except (TypeError, ValueError):
            damaged.append(key)
            continue
        wanted = {"model": {"identity", "profile_id"}, "resume": {"chain", "document_id"}}.get(note)
        if wanted is not None and not (isinstance(content, dict) and wanted == content.keys()):
            damaged.append(key)
    return damaged


def unusable_staged(connection: apsw.Connection, spec: CollectionSpec) -> Iterator[tuple[str, bytes]]:
    """Source and content hash of staged vectors that are zero, not finite or of another dimension."""
    import numpy as np

    for source_id, digest, vector in connection.execute(
        "SELECT source_id, content_hash, embedding FROM qedge_ingest_staged WHERE collection = ?", (spec.name,)
    ):
        if isinstance(vector, bytes) and len(vector) == 4 * spec.dimensions and len(digest) == 16:
            floats = np.frombuffer(vector, dtype=np.float32)
            if np.isfinite(floats).all() and floats.any():
                continue
        yield source_id, digest


def leftover_sources(connection: apsw.Connection, name: str) -> dict[str, int]:
    """Sources that are gone, though vectors are staged for them: they have no document, and no run of theirs has
    stopped on its way. Other staged vectors are what the next run need not embed again."""
    return dict(
        connection.execute(
            "SELECT source_id, count(*) FROM qedge_ingest_staged AS s WHERE collection = ?1 AND NOT EXISTS"
            " (SELECT 1 FROM qedge_ingest_document AS d WHERE d.collection = ?1 AND d.source_id = s.source_id)"
            " AND coalesce((SELECT outcome IS 'completed' FROM qedge_ingest_run AS r WHERE r.collection = ?2"
            " AND r.source_id = s.source_id ORDER BY started_utc DESC, run_id DESC LIMIT 1), 1) GROUP BY source_id",
            (name, name.removesuffix("_rebuild")),
        )
    )


def known_sources(connection: apsw.Connection, name: str, *, with_rows: bool) -> set[str]:
    """Every source that the state of a collection names, in whatever table, or (`with_rows`) its chunks do."""
    kept = (
        "SELECT source_id FROM qedge_ingest_document WHERE collection = ?1"
        " UNION SELECT source_id FROM qedge_ingest_version WHERE collection = ?1"
        " UNION SELECT source_id FROM qedge_ingest_staged WHERE collection = ?1"
        " UNION SELECT source_id FROM qedge_ingest_run WHERE collection = ?1"
    )
    rows = connection.execute(f"{kept} UNION SELECT source_id FROM {name}" if with_rows else kept, (name,))
    return {source_id for (source_id,) in rows if isinstance(source_id, str)}


def names_without_tables(connection: apsw.Connection, names: Collection[str]) -> list[str]:
    """Collections that state is kept of, but that are not among `names`, those that have tables."""
    kept = connection.execute(
        "SELECT collection FROM qedge_ingest_document UNION SELECT collection FROM qedge_ingest_version"
        " UNION SELECT collection FROM qedge_ingest_staged"
        " UNION SELECT substr(key, 1, instr(key, '/') - 1) FROM qedge_ingest_meta WHERE instr(key, '/') > 1 ORDER BY 1"
    )
    return [str(name) for (name,) in kept if name not in names]
