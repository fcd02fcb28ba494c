"""`qedge export`."""

from __future__ import annotations

from pathlib import Path

import click

from qedge_dagster.cli.options import common
from qedge_dagster.cli.output import counted, emit, emit_json, printable

_EPILOG = """\b
Examples:
  qedge export chunks.parquet
  qedge export handbook.parquet --db team.db --collection handbook

Then, for example: python -c "import pandas; print(pandas.read_parquet('chunks.parquet'))\""""


@click.command(epilog=_EPILOG, short_help="Write all chunks and vectors to a Parquet file.")
@click.argument("file", metavar="FILE.parquet", type=click.Path(dir_okay=False, path_type=Path))
@common
def command(file: Path, database: Path, collection: str, as_json: bool) -> None:
    """Write every chunk of the collection, with all its columns and its vector, to a Parquet file.

    A file of that name is replaced, once the new one is complete.
    """
    from qedge_dagster.collection import Collection

    with Collection.open(database, collection) as opened:
        chunks = opened.export(file)
    if as_json:
        emit_json({"file": str(file), "chunks": chunks})
    else:
        emit(printable(f"{file}: {counted(chunks, 'chunk')}"))
