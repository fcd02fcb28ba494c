"""`qedge doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from qedge_dagster.cli.failure import ExitCode
from qedge_dagster.cli.opening import existing_artifacts
from qedge_dagster.cli.options import common_without_collection
from qedge_dagster.cli.output import emit, emit_json, printable

if TYPE_CHECKING:
    from qedge_dagster.collection.findings import Finding
    from qedge_dagster.pipeline.doctor import Diagnosis

_EPILOG = """\b
Examples:
  qedge doctor
  qedge doctor --quick --json                  # from cron: exit code 1 says that something is wrong
  qedge doctor --repair                        # then `qedge ingest` indexes again what was lost

Exit codes: 0 nothing is wrong (any more), 1 something is, 2 wrong usage. A repair needs neither the documents nor the
model; it waits for no run, and ends with 6008 if one is active. What only a backup can bring back, it says."""


@click.command(epilog=_EPILOG, short_help="Check a database for damage, and mend it.")
@click.option("--repair", is_flag=True, help="Mend what can be mended from the file itself, and say what was done.")
@click.option(
    "--quick", is_flag=True, help="Read no texts and no vectors: whether rows, ids, counts and pages agree, no more."
)
@click.option("--collection", help="Only this collection of the database.  [default: all of them]")
@common_without_collection
@click.pass_context
def command(
    ctx: click.Context, repair: bool, quick: bool, database: Path, collection: str | None, as_json: bool
) -> None:
    """Look over the whole database: pages, indexes, chunks with their hashes, vectors, full text, state, staged
    vectors, artefacts and locks.

    Without --repair nothing is written, and runs may go on meanwhile. Tables that belong to an application in the same
    file are not touched.
    """
    from qedge_dagster.cli.progress import measure
    from qedge_dagster.pipeline.doctor import examine, mend

    if repair and quick:
        raise click.UsageError("--repair looks at everything: leave out --quick")
    artifacts = existing_artifacts(database)
    with measure(quiet=as_json) as on_progress:
        if repair:
            diagnosis = mend(database, collection, artifacts=artifacts, on_progress=on_progress)
        else:
            diagnosis = examine(database, collection, quick=quick, artifacts=artifacts, on_progress=on_progress)
    if as_json:
        emit_json(diagnosis.as_dict())
    else:
        emit("\n".join(_lines(diagnosis, repair=repair)))
    ctx.exit(ExitCode.COMPLETED if diagnosis.healthy else ExitCode.FAILED)


def _lines(diagnosis: Diagnosis, *, repair: bool) -> list[str]:
    lines = [_finding(finding) for finding in diagnosis.found]
    if diagnosis.done:
        lines += ["repaired:", *(printable(f"  {line}") for line in diagnosis.done)]
    if repair and diagnosis.found:
        lines += [f"left: {finding.message}" for finding in diagnosis.left]
    lines += [printable(f"note: {note}") for note in diagnosis.notes]
    mendable = [finding for finding in diagnosis.left if finding.mendable]
    names = ", ".join(diagnosis.collections)
    if diagnosis.healthy:
        state = "healthy now" if diagnosis.found else "healthy"
    else:
        state = f"{len(diagnosis.left)} kinds of damage" if len(diagnosis.left) > 1 else "damaged"
        if mendable and not repair:
            state += "; `qedge doctor --repair` mends what it can"
    return [*lines, printable(f"{diagnosis.database} ({names}): {state}")]


def _finding(finding: Finding) -> str:
    where = f"{finding.collection}: " if finding.collection else ""
    examples = f" ({', '.join(finding.examples)}{', …' if finding.count > len(finding.examples) else ''})"
    remedy = f"\n    {'--repair: ' if finding.mendable else ''}{finding.remedy}"
    return "\n".join(
        printable(line)
        for line in f"{where}{finding.message}{examples if finding.examples else ''}{remedy}".split("\n")
    )
