"""`qedge remove`."""

from __future__ import annotations

from pathlib import Path

import click

from qedge_dagster.cli.opening import find_source, open_existing_pipeline, open_state
from qedge_dagster.cli.options import common, source_id_option

_EPILOG = """\b
Examples:
  qedge remove drafts/old.md
  qedge remove a.md b.md --source-id /srv/docs

The files themselves are not touched. The next `qedge ingest` of a folder that still holds them brings them back: leave
them out there with --exclude."""


@click.command(epilog=_EPILOG, short_help="Remove documents from the collection.")
@click.argument("documents", metavar="DOCUMENT...", nargs=-1, required=True)
@source_id_option
@common
@click.pass_context
def command(
    ctx: click.Context,
    documents: tuple[str, ...],
    source_id: str | None,
    database: Path,
    collection: str,
    as_json: bool,
) -> None:
    """Remove documents and their chunks from the collection, by id. If one of them is unknown, none is removed."""
    from qedge_dagster.cli.interrupt import cancel_on_signals
    from qedge_dagster.cli.summary import show_result

    with open_state(database, collection) as state:
        sources = {find_source(state, document, source_id) for document in documents}
    if len(sources) > 1:
        raise click.UsageError(
            f"the documents are in several sources, remove them one by one: {', '.join(sorted(sources))}"
        )
    with open_existing_pipeline(database, collection) as pipeline, cancel_on_signals(pipeline.cancel):
        result = pipeline.remove(sources.pop(), documents)
    ctx.exit(show_result(result, as_json=as_json))
