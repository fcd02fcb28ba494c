"""How a command fails: one line on stderr and an exit code, never a traceback unless --debug asks for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING

import click

from qedge_dagster.cli.output import counted, note, printable
from qedge_dagster.errors import CATALOGUE, Failure, QedgeError

if TYPE_CHECKING:
    from qedge_dagster.state import DocumentRow

__all__ = ["ExitCode", "failure_lines", "recorded_failure", "report"]

_OPTIONS_INVALID = 6005
_DOCUMENTS_SHOWN = 5


class ExitCode(IntEnum):
    COMPLETED = 0
    FAILED = 1
    USAGE = 2
    SUSPENDED = 75  # EX_TEMPFAIL of sysexits.h: try again
    CANCELLED = 130  # what a shell reports for Ctrl-C


def report(error: Exception | Failure) -> ExitCode:
    """Print `qedge: 6008 RunAlreadyActive: message. Remedy.` and return the exit code."""
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "qedge"
        error = Failure(_OPTIONS_INVALID, error.format_message(), f"see `{command} --help`")
    elif isinstance(error, QedgeError):
        error = error.failure()
    else:
        error = _of_sqlite(error) or error
    if isinstance(error, Failure):
        line = f"{error.code} {error.name}: {_stopped(error.message)} {_sentence(error.remedy)}"
        code = ExitCode.USAGE if error.code == _OPTIONS_INVALID else ExitCode.FAILED
    else:
        line = f"unexpected {type(error).__name__}: {_stopped(str(error))} --debug shows where."
        code = ExitCode.FAILED
    note("qedge: " + printable(" ".join(line.split())))
    return code


def _of_sqlite(error: Exception | Failure) -> Failure | None:
    """What SQLite reports of the disk, or of another program that holds the file, is nobody's fault in here."""
    import apsw

    from qedge_dagster.collection.faults import database_error, is_of_the_machine

    if isinstance(error, apsw.Error) and is_of_the_machine(error):
        return database_error(error, "the database").failure()
    return None


def recorded_failure(row: DocumentRow) -> Failure | None:
    """The failure that the state holds of a document, with the catalogue's remedy."""
    code, _, rest = (row.error or "").partition(" ")
    if not code.isdecimal() or int(code) not in CATALOGUE:
        return None
    return Failure(int(code), rest.partition(": ")[2], CATALOGUE[int(code)].remedy)


def failure_lines(failed: Iterable[tuple[str, Failure]]) -> list[str]:
    """Failures by code and remedy, with the first documents of each."""
    groups: dict[tuple[int, str], list[tuple[str, Failure]]] = defaultdict(list)
    for document_id, failure in failed:
        groups[failure.code, failure.remedy].append((document_id, failure))
    lines: list[str] = []
    for _, group in sorted(groups.items()):
        first = group[0][1]
        documents = counted(len(group), "document")
        lines.append(printable(f"  {first.code} {first.name}: {documents}. {_sentence(first.remedy)}"))
        lines += [
            printable(f"    {document_id}: {failure.message}") for document_id, failure in group[:_DOCUMENTS_SHOWN]
        ]
        if len(group) > _DOCUMENTS_SHOWN:
            lines.append(f"    and {len(group) - _DOCUMENTS_SHOWN:,} more")
    return lines


def _stopped(text: str) -> str:
    """`text` with a full stop. Its first letter stays: it may be that of a file name, an id or an option."""
    text = text.strip()
    return text if not text or text[-1] in ".!?" else f"{text}."


def _sentence(remedy: str) -> str:
    """A remedy, which is our own text, as a sentence."""
    return remedy[:1].upper() + _stopped(remedy)[1:]
