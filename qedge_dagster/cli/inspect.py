"""`qedge inspect`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qedge_dagster.cli.failure import recorded_failure
from qedge_dagster.cli.opening import find_source, open_state
from qedge_dagster.cli.options import common, source_id_option
from qedge_dagster.cli.output import emit, emit_json, fit, printable, table, terminal_width

if TYPE_CHECKING:
    from qedge_dagster.collection import StoredChunk
    from qedge_dagster.state import DocumentRow, StageVersions

_EPILOG = """\b
Examples:
  qedge inspect guide/setup.md
  qedge inspect guide/setup.md --json

DOCUMENT is an id as `qedge search` and `qedge status` show it."""


@click.command(epilog=_EPILOG, short_help="What is known of one document, and its chunks.")
@click.argument("document")
@source_id_option
@common
def command(document: str, source_id: str | None, database: Path, collection: str, as_json: bool) -> None:
    """Show the state of one document, the data version of each stage, and its chunks."""
    from qedge_dagster.collection import Collection

    with open_state(database, collection) as state:
        source_id = find_source(state, document, source_id)
        row = state.document(source_id, document)
        assert row is not None  # find_source has found it in this snapshot
        versions = state.versions(source_id, document)
    with Collection.open(database, collection) as opened:
        chunks = opened.chunks(document, source_id)
        if as_json:
            listed = [_chunk(chunk) for chunk in chunks]
            emit_json({"source_id": source_id, **_row(row), "versions": _versions(versions), "chunks": listed})
            return
        emit("\n".join(_head(source_id, row, versions)))
        width = terminal_width()
        for chunk in chunks:
            emit("\n".join(_shown(chunk, width)))


def _row(row: DocumentRow) -> dict[str, Any]:
    failure = recorded_failure(row)
    return {
        **{name: _text(value) for name, value in asdict(row).items() if name != "error"},
        "failure": failure.as_dict() if failure else None,
    }


def _versions(versions: StageVersions | None) -> dict[str, Any] | None:
    return {name: _text(value) for name, value in asdict(versions).items()} if versions else None


def _chunk(chunk: StoredChunk) -> dict[str, Any]:
    return {name: _text(value) for name, value in asdict(chunk).items()}


def _text(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def _head(source_id: str, row: DocumentRow, versions: StageVersions | None) -> list[str]:
    facts = {"source_id": source_id, **_row(row), **(_versions(versions) or {})}
    facts["failure"] = row.error
    return table((name, value) for name, value in facts.items() if value is not None)


def _shown(chunk: StoredChunk, width: int) -> list[str]:
    page = f"  page {chunk.page}" if chunk.page > 0 else ""
    head = (
        f"\n[{chunk.ordinal}] {chunk.char_start}-{chunk.char_end}  {chunk.token_count} tokens  {chunk.block_kind}{page}"
    )
    preview = fit(printable(" ".join(chunk.text[: 4 * width].split())), width - 4)
    breadcrumb = [f"    {fit(printable(chunk.breadcrumb), width - 4, keep_end=True)}"] if chunk.breadcrumb else []
    return [head, *breadcrumb, f"    {preview}"]
