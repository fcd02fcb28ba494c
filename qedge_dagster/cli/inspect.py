"""`qedge inspect`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qedge_dagster.cli.failure import recorded_failure
from qedge_dagster.cli.opening import find_source, open_state
from qedge_dagster.cli.options import TEXT, common, source_id_option
from qedge_dagster.cli.output import emit, emit_json, fit, printable, table, terminal_width

if TYPE_CHECKING:
    from qedge_dagster.collection import StoredChunk
    from qedge_dagster.state import DocumentRow, StageVersions

_EPILOG = """\b
Examples:
  qedge inspect guide/setup.md
  qedge inspect guide/setup.md --json

DOCUMENT is an id as `qedge search` and `qedge status` show it. Artefacts, which runs under Dagster write, are looked
for in the folder FILE.artifacts beside the database."""

_PREVIEW_CHARACTERS = 300


@click.command(epilog=_EPILOG, short_help="What is known of one document, and its chunks.")
@click.argument("document", type=TEXT)
@source_id_option
@common
def command(document: str, source_id: str | None, database: Path, collection: str, as_json: bool) -> None:
    """Show the whole line of one document: its state, each stage's data version and artefact, and its chunks."""
    from qedge_dagster.artifacts.files import ArtifactFolder, default_root
    from qedge_dagster.collection import Collection

    with open_state(database, collection) as state:
        source_id = find_source(state, document, source_id)
        row = state.document(source_id, document)
        assert row is not None  # find_source has found it in this snapshot
        versions = state.versions(source_id, document)
    with Collection.open(database, collection) as opened:
        chunks = list(opened.chunks(document, source_id))
    folder = ArtifactFolder(default_root(database), collection)
    paths = folder.paths(source_id, document, versions) if versions else {}
    artifacts = {stage: str(path) for stage, path in paths.items() if path.is_file()}
    tokens = sum(chunk.token_count for chunk in chunks)
    preview = chunks[0].text[:_PREVIEW_CHARACTERS] if chunks else None
    facts = {"source_id": source_id, **_row(row), "tokens": tokens, "preview": preview}
    if as_json:
        listed = [_chunk(chunk) for chunk in chunks]
        emit_json({**facts, "versions": _versions(versions), "artifacts": artifacts, "chunks": listed})
        return
    width = terminal_width()
    failure = recorded_failure(row)
    if preview is not None:
        facts["preview"] = fit(printable(" ".join(preview.split())), width - 20)
    facts |= {"failure": row.error, "remedy": failure.remedy if failure else None, **(_versions(versions) or {})}
    facts |= {f"artefact of {stage}": path for stage, path in artifacts.items()}
    emit("\n".join(table((name, value) for name, value in facts.items() if value is not None)))
    for chunk in chunks:
        emit("\n".join(_shown(chunk, width)))


def _row(row: DocumentRow) -> dict[str, Any]:
    failure = recorded_failure(row)
    return {
        **{name: _text(value) for name, value in row._asdict().items() if name != "error"},
        "failure": failure.as_dict() if failure else None,
    }


def _versions(versions: StageVersions | None) -> dict[str, Any] | None:
    return {name: _text(value) for name, value in versions._asdict().items()} if versions else None


def _chunk(chunk: StoredChunk) -> dict[str, Any]:
    return {name: _text(value) for name, value in asdict(chunk).items()}


def _text(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def _shown(chunk: StoredChunk, width: int) -> list[str]:
    page = f"  page {chunk.page}" if chunk.page > 0 else ""
    head = (
        f"\n[{chunk.ordinal}] {chunk.char_start}-{chunk.char_end}  {chunk.token_count} tokens  {chunk.block_kind}{page}"
    )
    preview = fit(printable(" ".join(chunk.text[: 4 * width].split())), width - 4)
    breadcrumb = [f"    {fit(printable(chunk.breadcrumb), width - 4, keep_end=True)}"] if chunk.breadcrumb else []
    return [head, *breadcrumb, f"    {preview}"]
