"""What a run did, in a few lines."""

from __future__ import annotations

from qedge_dagster.cli.failure import ExitCode, failure_lines, report
from qedge_dagster.cli.output import emit, emit_json, note, printable
from qedge_dagster.pipeline.results import RunOutcome, RunResult

__all__ = ["show_result"]

_EXIT_CODES: dict[RunOutcome, ExitCode] = {
    "completed": ExitCode.COMPLETED,
    "suspended": ExitCode.SUSPENDED,
    "cancelled": ExitCode.CANCELLED,
    "failed": ExitCode.FAILED,
}
_WARNINGS_SHOWN = 10


def show_result(result: RunResult, *, as_json: bool) -> ExitCode:
    """Print the result and how to go on; returns the exit code of its outcome."""
    if as_json:
        emit_json(result.as_dict())
    else:
        emit("\n".join(_lines(result)))
    if result.failure is not None:
        report(result.failure)
    elif result.outcome != "completed":
        note(f"qedge: {result.outcome} ({result.suspend_reason}): run the same command again to go on")
    return _EXIT_CODES[result.outcome]


def _lines(result: RunResult) -> list[str]:
    counts = [
        _count(result.documents_seen, "document") + " seen",
        f"{result.documents_indexed:,} indexed",
        f"{result.documents_skipped:,} unchanged",
    ]
    if result.documents_removed:
        counts.append(f"{result.documents_removed:,} removed")
    if result.documents_failed:
        counts.append(f"{result.documents_failed:,} failed")
    lines = [f"{result.outcome} in {result.duration_seconds:.1f} s: {', '.join(counts)}"]
    if result.chunks_added or result.chunks_removed or result.chunks_unchanged:
        lines.append(
            f"chunks: +{result.chunks_added:,} -{result.chunks_removed:,}, {result.chunks_unchanged:,} unchanged"
            f" ({result.chunks_repaired:,} of them moved)"
        )
    reused = f"; {_count(result.vectors_reused, 'vector')} reused" if result.vectors_reused else ""
    lines.append(
        f"embedded: {_count(result.texts_embedded, 'text')}, {_count(result.tokens_embedded, 'token')},"
        f" {_count(result.embed_calls, 'call')}{reused}"
    )
    failed = [(document.document_id, document.failure) for document in result.documents if document.failure]
    if failed:
        lines += ["not indexed:", *failure_lines(failed)]
    lines += [printable(f"warning: {warning}") for warning in result.warnings[:_WARNINGS_SHOWN]]
    if len(result.warnings) > _WARNINGS_SHOWN:
        lines.append(f"and {len(result.warnings) - _WARNINGS_SHOWN:,} more warnings (--json shows them)")
    return lines


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
