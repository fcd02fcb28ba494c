"""What a run did, in a few lines."""

from __future__ import annotations

from qedge_dagster.cli.failure import ExitCode, failure_lines, report
from qedge_dagster.cli.output import counted, emit, emit_json, note, printable
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
    counts = {
        f"{counted(result.documents_seen, 'document')} seen": result.documents_seen,
        f"{result.documents_indexed:,} indexed": result.documents_indexed,
        f"{result.documents_skipped:,} unchanged": result.documents_skipped,
        f"{result.documents_removed:,} removed": result.documents_removed,
        f"{result.documents_failed:,} failed": result.documents_failed,
    }
    shown = ", ".join(text for text, number in counts.items() if number) or "no documents"
    lines = [f"{result.outcome} in {result.duration_seconds:.1f} s: {shown}"]
    if result.chunks_added or result.chunks_removed or result.chunks_unchanged:
        unchanged = f", {result.chunks_unchanged:,} unchanged" if result.chunks_unchanged else ""
        moved = f" ({result.chunks_repaired:,} of them moved)" if result.chunks_repaired else ""
        lines.append(f"chunks: +{result.chunks_added:,} -{result.chunks_removed:,}{unchanged}{moved}")
    if result.documents_indexed or result.documents_skipped:
        reused = f"; {counted(result.vectors_reused, 'vector')} reused" if result.vectors_reused else ""
        lines.append(
            f"embedded: {counted(result.texts_embedded, 'text')}, {counted(result.tokens_embedded, 'token')},"
            f" {counted(result.embed_calls, 'call')}{reused}"
        )
    failed = [(document.document_id, document.failure) for document in result.documents if document.failure]
    if failed:
        lines += ["not indexed:", *failure_lines(failed)]
    lines += [printable(f"warning: {warning}") for warning in result.warnings[:_WARNINGS_SHOWN]]
    if len(result.warnings) > _WARNINGS_SHOWN:
        lines.append(f"and {len(result.warnings) - _WARNINGS_SHOWN:,} more warnings (--json shows them)")
    return lines
