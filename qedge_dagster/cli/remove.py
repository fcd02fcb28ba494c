"""`qedge remove`."""

from __future__ import annotations

from pathlib import Path

import click

from qedge_dagster.cli.home import forget_source
from qedge_dagster.cli.opening import find_source, open_existing_pipeline, open_state
from qedge_dagster.cli.options import TEXT, common, source_id_option

_EPILOG = """\b
Examples:
  qedge remove drafts/old.md
  qedge remove a.md b.md --source-id /srv/docs
  qedge remove --all --source-id /srv/old-docs    # a folder that was moved, renamed or deleted

`qedge status` lists the sources. The files themselves are not touched. The next `qedge ingest` of a folder that still
holds them brings them back: leave them out there with --exclude."""


@click.command(epilog=_EPILOG, short_help="Remove documents from the collection.")
@click.argument("documents", metavar="[DOCUMENT]...", nargs=-1, type=TEXT)
@click.option("--all", "everything", is_flag=True, help="Remove every document of the source --source-id.")
@source_id_option
@common
@click.pass_context
def command(
    ctx: click.Context,
    documents: tuple[str, ...],
    everything: bool,
    source_id: str | None,
    database: Path,
    collection: str,
    as_json: bool,
) -> None:
    """Remove documents and their chunks from the collection: by id, or with --all every document of a source.

    If one of the ids is unknown, none is removed. A source that is removed with --all is gone from `qedge ui` too, once
    its code location is loaded again.
    """
    from qedge_dagster.cli.interrupt import cancel_on_signals
    from qedge_dagster.cli.summary import show_result

    if everything == bool(documents):
        raise click.UsageError("give either the ids of documents, or --all with --source-id")
    if everything and source_id is None:
        raise click.UsageError("--all removes the documents of one source: say which with --source-id")
    with open_state(database, collection) as state:
        if everything:
            documents = tuple(row.document_id for _, row in state.documents(source_id))
            if not documents:
                raise click.UsageError(f"collection {collection} holds no source {source_id}")
        sources = {find_source(state, document, source_id) for document in documents}
    if len(sources) > 1:
        raise click.UsageError(
            f"the documents are in several sources, remove them one by one: {', '.join(sorted(sources))}"
        )
    source = sources.pop()
    with open_existing_pipeline(database, collection) as pipeline, cancel_on_signals(pipeline.cancel):
        result = pipeline.remove(source, documents)
    if everything and result.outcome == "completed":
        forget_source(database, collection, source)
    ctx.exit(show_result(result, as_json=as_json))
