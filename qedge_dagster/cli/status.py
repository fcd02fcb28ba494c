"""`qedge status`."""

from __future__ import annotations

import textwrap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qedge_dagster.cli.failure import failure_lines, recorded_failure
from qedge_dagster.cli.opening import open_state
from qedge_dagster.cli.options import common
from qedge_dagster.cli.output import counted, emit, emit_json, printable, table, terminal_width
from qedge_dagster.errors import Failure

if TYPE_CHECKING:
    from qedge_dagster.state import DocumentRow, RunRow, StateStore

_EPILOG = """\b
Examples:
  qedge status
  qedge status --db team.db --json"""

_STATUSES = ("indexed", "failed", "unsupported", "no_text_layer")
_CAVEAT = (
    "Nothing known to be outstanding does not mean that the files are unchanged: only a run reads them."
    " `qedge ingest … --budget quick` is the cheap way to find out."
)


@click.command(epilog=_EPILOG, short_help="What the collection holds, and what is outstanding.")
@common
def command(database: Path, collection: str, as_json: bool) -> None:
    """Show how many documents and chunks the collection holds, which documents failed and why, the last run, and what
    is known to be outstanding."""
    with open_state(database, collection) as state:
        facts = _facts(state)
    facts = {"database": str(database), "collection": collection, **facts, "caveat": _CAVEAT}
    if as_json:
        emit_json(facts)
    else:
        emit("\n".join(_lines(facts)))


def _facts(state: StateStore) -> dict[str, Any]:
    from qedge_dagster.collection.chunk import VECTORS_OF_OTHERS

    chunks = 0
    by_source: dict[str, Counter[str]] = {}
    not_indexed: list[dict[str, object]] = []
    retried = stale = 0
    for source_id, row in state.documents():
        chunks += row.chunk_count
        counts = by_source.setdefault(source_id, Counter())
        counts.update({"documents": 1, "chunks": row.chunk_count, row.status: 1})
        # Of an indexed document `qedge doctor --repair` takes the hash, where chunks of it were lost.
        # What another library wrote never had one.
        unhashed = row.content_hash is None and row.extractor_id != VECTORS_OF_OTHERS
        retried += unhashed and row.status in ("indexed", "failed")
        if row.status != "indexed":
            not_indexed.append(_not_indexed(source_id, row))
            stale += row.chunk_count > 0
    unseen = sum(state.unseen(source_id) for source_id in by_source)
    runs = [run for source_id in by_source if (run := state.last_run(source_id)) is not None]
    last = state.last_run()
    unfinished = state.unfinished_runs()
    return {
        "documents": sum(counts["documents"] for counts in by_source.values()),
        "chunks": chunks,
        "sources": [{"source_id": source_id, **counts} for source_id, counts in by_source.items()],
        "not_indexed": not_indexed,
        "last_run": _run(last),
        "outstanding": {
            "sources_not_completed": [run.source_id for run in runs if run.outcome != "completed"],
            "documents_to_try_again": retried,
            "documents_stale": stale + unseen,
            "unfinished_runs": [run.run_id for run in unfinished],
        },
        "unfinished_runs": [_run(run) for run in unfinished],
    }


def _run(row: RunRow | None) -> dict[str, object] | None:
    if row is None:
        return None
    return {**row._asdict(), "recipe_hash": row.recipe_hash.hex() if row.recipe_hash else None}


def _not_indexed(source_id: str, row: DocumentRow) -> dict[str, object]:
    failure = recorded_failure(row)
    return {
        "source_id": source_id,
        "document_id": row.document_id,
        "status": row.status,
        "chunks_kept": row.chunk_count,
        "failure": failure.as_dict() if failure else None,
    }


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = [
        printable(f"{facts['database']}, collection {facts['collection']}:")
        + f" {counted(facts['documents'], 'document')}, {counted(facts['chunks'], 'chunk')}"
    ]
    lines += table(
        (
            (
                source["source_id"],
                counted(source["documents"], "document"),
                counted(source["chunks"], "chunk"),
                ", ".join(f"{source[status]:,} {status}" for status in _STATUSES if source.get(status)),
            )
            for source in facts["sources"]
        ),
        indent="  ",
    )
    lines += _last_run_lines(facts["last_run"])
    if facts["not_indexed"]:
        lines.append("not indexed:")
        lines += failure_lines(
            (entry["document_id"], Failure(**{name: entry["failure"][name] for name in ("code", "message", "remedy")}))
            for entry in facts["not_indexed"]
            if entry["failure"]
        )
    outstanding = _outstanding_lines(facts["outstanding"])
    outstanding += [
        printable(f"  run {run['run_id']}: active, or its process died; {_changes(run)} so far")
        for run in facts["unfinished_runs"]
    ]
    lines += ["outstanding:", *outstanding] if outstanding else ["outstanding: nothing known"]
    return [*lines, *textwrap.wrap(facts["caveat"], terminal_width())]


def _last_run_lines(run: dict[str, Any] | None) -> list[str]:
    if run is None:
        return ["last run: none that has ended"]
    reason = run["suspend_reason"] or run["error"]
    outcome = f"{run['outcome']} ({reason})" if reason else run["outcome"]
    ended = run["finished_utc"][:19].replace("T", " ")
    return [printable(f"last run: {outcome}, {ended} UTC: {_changes(run)}")]


def _changes(run: dict[str, Any]) -> str:
    indexed = counted(run["documents_indexed"], "document")
    return f"{indexed} indexed, +{run['chunks_added']:,} -{run['chunks_removed']:,} chunks"


def _outstanding_lines(outstanding: dict[str, Any]) -> list[str]:
    lines = [
        printable(f"  source {source_id}: its last run did not complete; run it again")
        for source_id in outstanding["sources_not_completed"]
    ]
    if again := outstanding["documents_to_try_again"]:
        lines.append(f"  {counted(again, 'document')} failed or damaged, to be tried again by the next run")
    if outstanding["documents_stale"]:
        lines.append(
            f"  {counted(outstanding['documents_stale'], 'stale document')}: gone or failed, with older chunks kept"
        )
    return lines
