"""`qedge prune`."""

from __future__ import annotations

from pathlib import Path

import click

from qedge_dagster.cli.opening import open_existing_pipeline
from qedge_dagster.cli.options import common
from qedge_dagster.cli.sourcing import GIVEN_PATH, source_options, tree_source

_EPILOG = """\b
Examples:
  qedge prune docs
  qedge prune docs --pattern '*.md' --json
  qedge prune docs --allow-empty               # the folder was emptied on purpose

Give the same --pattern, --exclude, --source-id and --hidden as to `qedge ingest`: what they leave out counts as
gone."""


@click.command(epilog=_EPILOG, short_help="Remove documents that the folder no longer holds.")
@click.argument("path", type=GIVEN_PATH)
@source_options
@click.option("--allow-empty", is_flag=True, help="Remove all documents when the folder holds none at all.")
@common
@click.pass_context
def command(
    ctx: click.Context,
    path: Path | str,
    patterns: tuple[str, ...],
    exclude: tuple[str, ...],
    source_id: str | None,
    include_hidden: bool,
    allow_empty: bool,
    database: Path,
    collection: str,
    as_json: bool,
) -> None:
    """List the folder or store PATH and remove the documents that it no longer holds.

    No document is read, and no model is needed.
    A completed `qedge ingest` does this by itself. Nothing is removed while a part of the folder cannot be listed.
    """
    from qedge_dagster.cli.interrupt import cancel_on_signals
    from qedge_dagster.cli.summary import show_result

    if isinstance(path, Path) and path.is_file():
        raise click.UsageError("prune takes a folder; use `qedge remove` for single documents")
    source = tree_source(
        path, database, patterns=patterns, exclude=exclude, source_id=source_id, include_hidden=include_hidden
    )
    with open_existing_pipeline(database, collection) as pipeline, cancel_on_signals(pipeline.cancel):
        result = pipeline.prune(source, allow_empty=allow_empty)
    ctx.exit(show_result(result, as_json=as_json))
