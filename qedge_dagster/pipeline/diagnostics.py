"""Everything one asks when something looks wrong, as one flat mapping."""

from __future__ import annotations

from dataclasses import asdict

from qedge_dagster.collection.chunk import VECTORS_OF_OTHERS
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.schema import SCHEMA_VERSION, read_spec
from qedge_dagster.collection.writer import CollectionWriter
from qedge_dagster.extractors.base import fingerprint
from qedge_dagster.hashing import HASH_ALGORITHM
from qedge_dagster.pipeline.lock import is_locked
from qedge_dagster.pipeline.stages import Stages
from qedge_dagster.state import StateStore

__all__ = ["count_documents", "diagnostics"]

_CAVEAT = (
    "recipe_stale 0, stale 0 and a completed last run mean that nothing known is outstanding, not that the files are"
    " unchanged: only a run reads them, and one with the quick budget is the cheap way to find out"
)


def diagnostics(database: Database, collection: str, stages: Stages, *, counts: bool) -> dict[str, object]:
    """Raises `QedgeError` 6011 if the collection's tables are not ours. Values are None where nothing is recorded."""
    state = StateStore(database, collection)
    spec = read_spec(database, collection)
    profile, tokenizer = stages.embedder.profile, stages.embedder.tokenizer
    recorded = state.model() if spec else None
    facts: dict[str, object] = {
        "collection": collection,
        "database": str(database.path),
        "dimensions": spec.dimensions if spec else profile.dimensions,
        "distance": spec.distance if spec else stages.options.distance,
        "fts_tokenizer": spec.fts_tokenizer if spec else stages.options.fts_tokenizer,
        "tables": f"{collection}, {collection}_vec, {collection}_fts" if spec else None,
        "recipe_hash": stages.recipe.hash().hex(),
        "model_profile": profile.id,
        "model_identity": stages.model().identity,
        "batch_invariance": stages.embedder.batch_invariance,
        "collection_model_profile": recorded.profile_id if recorded else None,
        "collection_model_identity": recorded.identity if recorded else None,
        "tokenizer": tokenizer.id if tokenizer else None,
        **{f"budget_{name}": value for name, value in asdict(stages.budget).items()},
        "chunker": f"{stages.chunker.id}:{stages.chunker.version}",
        "extractors": ", ".join(fingerprint(extractor) for extractor in stages.registry),
        "throttle": stages.options.throttle,
        "throttle_reason": state.throttle_reason() if spec else None,
        "write_batch_size": stages.options.write_batch_size,
        "hash_algorithm": HASH_ALGORITHM,
        "schema_version": SCHEMA_VERSION,
        **_runs(database, state, exists=spec is not None),
        **{f"last_stop_{step}_seconds": seconds for step, seconds in (state.stop() if spec else {}).items()},
    }
    if counts:
        facts.update(count_documents(database, state, stages))
        facts["caveat"] = _CAVEAT
    return facts


def _runs(database: Database, state: StateStore, *, exists: bool) -> dict[str, object]:
    unfinished = state.unfinished_runs() if exists else []
    active = [run.run_id for run in unfinished if is_locked(database.path, state.collection, run.source_id)]
    last = state.last_run() if exists else None
    names = ("run_id", "source_id", "outcome", "suspend_reason", "started_utc", "finished_utc")
    names += ("documents_indexed", "chunks_added", "chunks_removed", "error")
    return {
        "active_run": ", ".join(active) or None,
        "died_runs": len(unfinished) - len(active),
        **{f"last_run_{name.removeprefix('run_')}": getattr(last, name, None) for name in names},
    }


def count_documents(database: Database, state: StateStore, stages: Stages) -> dict[str, int]:
    """`documents`, `chunks`, `failed`, `stale` and `recipe_stale`; loads no model."""
    if read_spec(database, state.collection) is None:
        return dict.fromkeys(("documents", "chunks", "failed", "stale", "recipe_stale"), 0)
    current: dict[str | None, bytes] = {extractor.id: stages.recipe_hash(extractor) for extractor in stages.registry}
    documents = failed = recipe_stale = stale = 0
    for extractor_id, recipe_hash, status, with_chunks, count in state.census():
        documents += count
        failed += count if status == "failed" else 0
        stale += count if with_chunks and status != "indexed" else 0
        if extractor_id != VECTORS_OF_OTHERS:  # no run would bring these up to date
            recipe_stale += count if status != "unsupported" and recipe_hash != current.get(extractor_id) else 0
    unseen = sum(state.unseen(source_id) for source_id in state.source_ids())
    return {
        "documents": documents,
        "chunks": CollectionWriter(database, state.collection).row_count(),
        "failed": failed,
        "stale": stale + unseen,
        "recipe_stale": recipe_stale,
    }
