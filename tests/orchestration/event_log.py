"""What the tests of the event log have in common."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import dagster as dg

__all__ = ["observe", "observed", "rows"]


def rows(path: str | Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def observe(instance: dg.DagsterInstance, partition: str) -> None:
    instance.report_runless_asset_event(
        dg.AssetObservation("a", partition=partition, tags={"dagster/data_version": partition})
    )


def observed(instance: dg.DagsterInstance) -> list[str | None]:
    records = instance.fetch_observations(dg.AssetKey("a"), limit=1000, ascending=True).records
    return [record.partition_key for record in records]
