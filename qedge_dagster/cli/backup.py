"""`qedge backup`."""

from __future__ import annotations

from pathlib import Path

import click

from qedge_dagster.cli.options import common_without_collection
from qedge_dagster.cli.output import emit, emit_json, printable

_EPILOG = """\b
Examples:
  qedge backup qedge-backup.db
  qedge backup /backup/team.db --db team.db --overwrite
  qedge doctor --db qedge-backup.db            # look the copy over

To go back, end whatever uses the database, delete it with its -wal and -shm files, and put the copy in its place."""


@click.command(epilog=_EPILOG, short_help="Copy the database while it is in use.")
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--overwrite", is_flag=True, help="Replace TARGET if it exists, once the new copy is whole.")
@common_without_collection
def command(target: Path, overwrite: bool, database: Path, as_json: bool) -> None:
    """Copy the whole database, as it is at this moment, to the file TARGET.

    A run may write meanwhile: the copy holds whole documents only. TARGET appears when the copy is complete, checked
    and on the disk. All collections, the state and whatever else is in the file are copied.
    """
    from qedge_dagster.cli.progress import measure
    from qedge_dagster.collection.backup import backup

    with measure(quiet=as_json) as on_progress:
        size = backup(database, target, overwrite=overwrite, on_progress=on_progress)
    if as_json:
        emit_json({"database": str(database), "target": str(target), "bytes": size})
    else:
        emit(printable(f"{target}: {size:,} bytes, copied and checked"))
