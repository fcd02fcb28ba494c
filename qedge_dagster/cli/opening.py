"""Opening what a command works on: the model, the pipeline, the state."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qedge_dagster.errors import QedgeError

if TYPE_CHECKING:
    from qedge_dagster.chunking.base import ChunkingOptions
    from qedge_dagster.collection.schema import CollectionSpec
    from qedge_dagster.embedding.base import Embedder
    from qedge_dagster.pipeline import IngestionPipeline
    from qedge_dagster.state import StateStore

PROFILE_ALONE = "--profile describes the model of --model, which is missing"

__all__ = [
    "PROFILE_ALONE",
    "existing_artifacts",
    "existing_spec",
    "find_source",
    "load_embedder",
    "open_existing_pipeline",
    "open_pipeline",
    "open_state",
]


def load_embedder(model: Path | None, profile: str | None, *, optimized: bool = True) -> Embedder:
    """The model in the folder `model`, or the default one; not `optimized` for who embeds one text."""
    from qedge_dagster.embedding import OnnxEmbedder

    if model is not None:
        return OnnxEmbedder.from_folder(model, profile, optimized=optimized)
    if profile is not None:
        raise click.UsageError(PROFILE_ALONE)
    return OnnxEmbedder.default(optimized=optimized)


def existing_spec(database: Path, collection: str) -> CollectionSpec | None:
    """What was fixed when the collection was made; None if there is none yet."""
    from qedge_dagster.collection.connection import Database
    from qedge_dagster.collection.schema import read_spec

    if not database.exists():
        return None
    with closing(Database(database, read_only=True)) as opened:
        return read_spec(opened, collection)


def open_pipeline(
    database: Path,
    collection: str,
    *,
    chunking: ChunkingOptions | None = None,
    model: Path | None = None,
    profile: str | None = None,
    extraction: Mapping[str, Any] | None = None,
    artifacts: Path | None = None,
    **settings: Any,
) -> IngestionPipeline:
    """`settings` are fields of `IngestionOptions`; those that are None keep their default, which for a collection that
    exists is what it was made with. `extraction` are arguments of `default_extractors`. Without `model`, the pipeline
    loads the default one when it needs it."""
    from qedge_dagster.extractors import default_extractors
    from qedge_dagster.pipeline import IngestionPipeline
    from qedge_dagster.pipeline.options import IngestionOptions

    spec = existing_spec(database, collection)
    if spec is not None:
        settings = {"distance": spec.distance, "fts_tokenizer": spec.fts_tokenizer, **_given(settings)}
    options = IngestionOptions(**_given({"chunking": chunking, **settings}))
    embedder = load_embedder(model, profile) if model or profile else None
    extractors = default_extractors(**extraction) if extraction else ()
    return IngestionPipeline.open(
        database,
        collection=collection,
        embedder=embedder,
        extractors=extractors,
        options=options,
        artifacts=artifacts,
    )


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def open_existing_pipeline(database: Path, collection: str, **settings: Any) -> IngestionPipeline:
    """The same, but raises `QedgeError` 6002 instead of making a database that was only mistyped. Artefacts that lie
    beside the database are kept right."""
    if existing_spec(database, collection) is None:
        raise QedgeError(6002, f"{database} holds no collection {collection}")
    return open_pipeline(database, collection, artifacts=existing_artifacts(database), **settings)


def existing_artifacts(database: Path) -> Path | None:
    """The folder of stage artefacts beside the database, where runs of Dagster have made one."""
    from qedge_dagster.artifacts.files import default_root

    root = default_root(database)
    return root if root.is_dir() else None


@contextmanager
def open_state(database: Path, collection: str) -> Generator[StateStore]:
    """The state of an existing collection, to read: one state of it, until the context ends.

    Raises `QedgeError` 6002 where there is none, 6011 and 6202 to 6204 where this release cannot read it.
    """
    from qedge_dagster.collection.schema import check_file
    from qedge_dagster.collection.snapshot import open_snapshot
    from qedge_dagster.state import StateStore

    with open_snapshot(database, collection) as (opened, _):
        if not check_file(opened):
            raise QedgeError(6201, f"{database} holds collection {collection}, but no ingestion state")
        yield StateStore(opened, collection)


def find_source(state: StateStore, document_id: str, source_id: str | None) -> str:
    """The source of a known document: `source_id` where it is given, else the only one that has the document."""
    candidates = state.source_ids() if source_id is None else [source_id]
    found = [candidate for candidate in candidates if state.document(candidate, document_id) is not None]
    if not found:
        where = f"collection {state.collection}" if source_id is None else f"source {source_id}"
        raise click.UsageError(f"{where} holds no document {document_id}")
    if len(found) > 1:
        raise click.UsageError(f"{document_id} is in several sources, choose one with --source-id: {', '.join(found)}")
    return found[0]
