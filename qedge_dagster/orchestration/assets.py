"""The stages as assets: one op, document by document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dagster import AssetsDefinition, multi_asset

from qedge_dagster.orchestration.target import IngestionTarget

__all__ = ["POOL", "ingestion_assets"]

#: With a limit of 1, the runs of a backfill queue up instead of waiting for the lock of the first one.
POOL = "qedge_ingestion"


def ingestion_assets(
    target: IngestionTarget, *, required_resource_keys: set[str] | None = None
) -> Callable[[Callable[..., Any]], AssetsDefinition]:
    """Make a function the op behind the stages of `target`:

        notes = IngestionTarget(FolderSource("notes", "*.md"), collection="notes")

        @ingestion_assets(notes)
        def notes_assets(context: AssetExecutionContext, ingestion: IngestionResource):
            yield from ingest_partitions(context, notes, ingestion)

    A function that takes no resource as an argument names those it needs in `required_resource_keys`, as in any asset.
    One op cannot be split, and has no retry policy: a stage has no meaning without those before it in the same
    transaction, and Dagster would retry what was stopped on purpose.
    """
    return multi_asset(
        name=f"{target.identifier}_ingestion",
        specs=target.stage_specs,
        can_subset=False,
        pool=POOL,
        op_tags={"dagster/compute_kind": "qedge"},
        required_resource_keys=required_resource_keys,
    )
