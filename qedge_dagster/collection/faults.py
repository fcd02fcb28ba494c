"""What SQLite reports of the file, the disk and other programs, in this product's codes and words."""

from __future__ import annotations

from pathlib import Path

import apsw

from qedge_dagster.errors import QedgeError

__all__ = ["database_error", "is_of_the_machine"]

_OF_THE_MACHINE = (
    *(apsw.CorruptError, apsw.NotADBError, apsw.FullError, apsw.BusyError, apsw.LockedError),
    *(apsw.ReadOnlyError, apsw.CantOpenError, apsw.IOError, apsw.NoMemError, apsw.ProtocolError, apsw.PermissionsError),
)


def is_of_the_machine(error: apsw.Error) -> bool:
    """Whether the fault is of the file, the disk or another program, so that the next document would meet it too.

    The connection must not write on, whether the fault lasts or not: after an input error FTS5 keeps what it had in
    memory through the rollback, and the next transaction would write a full-text index that is out of step.
    """
    return isinstance(error, _OF_THE_MACHINE)


def database_error(error: apsw.Error, path: Path | str) -> QedgeError:
    """`QedgeError` 6204 if the file is damaged, else 6205: what was committed is kept, and the next run goes on."""
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return QedgeError(6204, f"{path} is damaged: {error}")
    if isinstance(error, apsw.FullError):
        remedy = "make room on the disk, then run again: nothing that was committed is lost"
        return QedgeError(6205, f"{path} cannot be written: the disk is full", remedy=remedy)
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        remedy = "wait for the other program to end its transaction, or stop it, then run again"
        return QedgeError(6205, f"another program holds {path}: {error}", remedy=remedy)
    if isinstance(error, apsw.ReadOnlyError):
        remedy = "let the database, its -wal and -shm files and its folder be written to, then run again"
        return QedgeError(6205, f"{path} cannot be written: {error}", remedy=remedy)
    return QedgeError(6205, f"{path} cannot be used: {type(error).__name__}: {error}")
