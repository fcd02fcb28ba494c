"""`qedge diagnostics`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qedge_dagster.cli.opening import open_existing_pipeline
from qedge_dagster.cli.options import chunking_options, common, model_options, read_chunking
from qedge_dagster.cli.output import emit, emit_json, table

_EPILOG = """\b
Examples:
  qedge diagnostics
  qedge diagnostics --counts --json

Give the same model and chunking options as to `qedge ingest`: recipe, budget and recipe_stale depend on them."""


@click.command(epilog=_EPILOG, short_help="Every fact to look at when something seems wrong.")
@click.option(
    "--counts", is_flag=True, help="Count documents, chunks, and failed, stale and recipe-stale documents too."
)
@model_options
@chunking_options
@common
def command(
    counts: bool,
    database: Path,
    collection: str,
    as_json: bool,
    model: Path | None,
    profile: str | None,
    **chunking: Any,
) -> None:
    """Show the collection's tables, model, recipe, token budget, extractors, hashes and last run."""
    with open_existing_pipeline(
        database, collection, chunking=read_chunking(chunking), model=model, profile=profile
    ) as pipeline:
        facts = pipeline.diagnostics(counts=counts)
    if as_json:
        emit_json(facts)
    else:
        emit("\n".join(table((name, "-" if value is None else value) for name, value in facts.items())))
