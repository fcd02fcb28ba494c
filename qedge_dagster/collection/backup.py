"""A copy of a whole database while others write to it."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import closing, suppress
from pathlib import Path

import apsw

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.integrity import OnProgress, check_pages, no_progress
from qedge_dagster.collection.snapshot import read_errors
from qedge_dagster.errors import QedgeError

__all__ = ["backup"]

# 512 KiB of the usual page size: often enough for a progress display and for Ctrl-C.
_PAGES_PER_STEP = 128


def backup(
    path: Path | str,
    target: Path | str,
    *,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> int:
    """Copy the database at `path`, every table in it, as it is at this moment; returns the size in bytes.

    A run may write meanwhile: neither waits for the other. `target` appears when the copy is whole, checked and on the
    disk, as one file without a write-ahead log. `on_progress` is told what is done, how much of it, and of how much.

    Raises `QedgeError` 6002 if there is no such database, 6204 if it is damaged, 6005 if `target` exists (without
    `overwrite`) or is in use, 6207 if it cannot be written.
    """
    path, target = Path(path), Path(target)
    report = on_progress or no_progress
    with closing(Database(path, read_only=True)) as database:
        _check_target(path, target, overwrite)
        partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
        try:
            with read_errors(path), database.snapshot():
                database.connection.execute("SELECT 1 FROM sqlite_master").fetchall()  # here the snapshot begins
                _copy(database.connection, partial, target, report)
            report("checking the copy", 0, 0)
            with closing(Database(partial, read_only=True)) as copy:
                damage = check_pages(copy)
            if damage:
                raise QedgeError(
                    6204,
                    f"{path} is damaged: {damage[0].message}",
                    remedy="see what `qedge doctor` finds; an older backup, if there is one, is better than this one",
                )
            size = partial.stat().st_size
            _sync(partial)
            _put_in_place(partial, target, overwrite)
            _sync(target.parent)
        except OSError as error:
            raise _not_written(target, error.strerror or type(error).__name__) from error
        finally:
            for leftover in (partial, *(partial.with_name(f"{partial.name}-{part}") for part in ("journal", "wal"))):
                with suppress(OSError):
                    leftover.unlink(missing_ok=True)
    return size


def _check_target(path: Path, target: Path, overwrite: bool) -> None:
    if target.exists():
        if target.samefile(path):
            raise QedgeError(6005, f"{target} is the database itself")
        if not overwrite:
            raise QedgeError(6005, f"{target} exists", remedy="use --overwrite to replace it, or another name")
        if not target.is_file():
            raise QedgeError(6005, f"{target} is no file")
    # SQLite would take the log of another database for that of the copy.
    for part in ("wal", "journal"):
        beside = target.with_name(f"{target.name}-{part}")
        if beside.exists():
            raise QedgeError(
                6005,
                f"{beside} exists: {target} is in use, or its last user was killed",
                remedy="use another name, or delete both files if nobody needs them",
            )


def _copy(source: apsw.Connection, partial: Path, target: Path, report: OnProgress) -> None:
    """Page by page within the source's read transaction, so that a writer does not make it begin again."""
    try:
        with closing(apsw.Connection(str(partial.absolute()))) as copy:
            with copy.backup("main", source, "main") as pages:
                while not pages.done:
                    pages.step(_PAGES_PER_STEP)
                    report("copying pages", pages.page_count - pages.remaining, pages.page_count)
            # The pages say that there is a write-ahead log, which only a writer needs.
            copy.pragma("journal_mode", "delete")
    except apsw.FullError as error:  # its own message says "not an error"
        raise _not_written(target, "no space left") from error
    except (apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError) as error:
        raise _not_written(target, type(error).__name__ if "not an error" in str(error) else str(error)) from error


def _put_in_place(partial: Path, target: Path, overwrite: bool) -> None:
    if not overwrite:
        try:
            os.link(partial, target)  # unlike a rename, it never replaces what has come there meanwhile
            return
        except FileExistsError:
            raise QedgeError(6005, f"{target} exists now", remedy="use another name") from None
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK):
                raise
    os.replace(partial, target)


def _sync(path: Path) -> None:
    """To the disk, so that a power cut after the end of the backup does not undo it."""
    if os.name == "nt" and path.is_dir():
        return  # a folder cannot be opened there
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _not_written(target: Path, reason: str) -> QedgeError:
    return QedgeError(
        6207, f"{target} cannot be written: {reason}", remedy="check that its folder exists, is writable and has room"
    )
