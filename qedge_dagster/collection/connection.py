"""Opening the SQLite file: apsw, sqlite-vec, and every pragma with its reason."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import apsw

from qedge_dagster.collection.faults import database_error, is_of_the_machine
from qedge_dagster.errors import QedgeError

__all__ = ["Database", "Synchronous"]

Synchronous = Literal["normal", "full"]

_BUSY_TIMEOUT_MS = 5_000


def _sqlite_vec() -> str:
    """Path of the extension, as `sqlite_vec.loadable_path()` gives it. Importing that package imports numpy, which
    costs a reader of the state more than its whole work."""
    package = find_spec("sqlite_vec")
    if package is None or package.origin is None:
        raise QedgeError(6002, "sqlite-vec is not installed", remedy="pip install sqlite-vec")
    return str(Path(package.origin).with_name("vec0"))


class Database:
    """One connection. Not for use by two threads at once: a transaction belongs to the connection.

    A writer's connection becomes WAL only with `enable_wal`, after the file was found to be ours, so that a database
    that is refused is not written to.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        read_only: bool = False,
        synchronous: Synchronous = "normal",
        busy_timeout_ms: int = _BUSY_TIMEOUT_MS,
    ) -> None:
        self.path = Path(path)
        self._busy_timeout_ms = busy_timeout_ms
        flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        if read_only and not self.path.is_file():
            raise QedgeError(6002, f"there is no database at {self.path}")
        if not read_only and self.path.is_file():
            _make_writable(self.path)
        try:
            # Absolute, since SQLite gives a meaning of its own to names such as ":memory:".
            self.connection = apsw.Connection(str(self.path.absolute()), flags=flags)
            # Wait for another writer's transaction instead of failing at once.
            self.connection.set_busy_timeout(busy_timeout_ms)
            self.connection.enable_load_extension(True)
            self.connection.load_extension(_sqlite_vec())
            self.connection.enable_load_extension(False)
            # NORMAL: consistent at any instant, and a killed process loses nothing that was committed; a power cut may
            # cost the newest commits, which the next run does again. FULL syncs at each commit.
            self.connection.pragma("synchronous", synchronous)
            # A long run must not leave a WAL file of its largest size behind.
            self.connection.pragma("journal_size_limit", 64 * 1024 * 1024)
            self.connection.pragma("schema_version")  # the first read: fails here if this is no SQLite file
        except apsw.NotADBError as error:
            raise QedgeError(6204, f"{self.path} is not an SQLite database") from error
        except apsw.CorruptError as error:
            raise database_error(error, self.path) from error
        except apsw.ReadOnlyError as error:
            raise QedgeError(
                6002,
                f"{self.path}: {error}",
                remedy="let its folder be written to: SQLite keeps files beside a WAL database",
            ) from error
        except apsw.CantOpenError as error:
            raise QedgeError(6002, f"{self.path} cannot be opened: {error}") from error
        except apsw.ExtensionLoadingError as error:
            raise QedgeError(6002, f"sqlite-vec cannot be loaded: {error}") from error
        except apsw.Error as error:
            raise database_error(error, self.path) from error
        #: Whether what SQLite's extensions keep in memory may not be what is in the file.
        self.spoiled = False
        self._identity = self._look()

    def enable_wal(self) -> None:
        """Readers never block the writer, nor the writer readers. Persistent in the file."""
        deadline = time.monotonic() + _BUSY_TIMEOUT_MS / 1000
        while self.connection.pragma("journal_mode") != "wal":
            try:  # SQLite does not call the busy handler for this one
                mode = self.connection.pragma("journal_mode", "wal")
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                if mode != "wal":  # a file system without shared memory
                    raise QedgeError(6002, f"{self.path} cannot be put into WAL mode", remedy="use a local disk")

    @contextmanager
    def atomic(self) -> Generator[None, None, None]:
        """A write transaction; rolled back on any exception, KeyboardInterrupt included.

        IMMEDIATE, because a deferred transaction that reads first fails at once under a concurrent writer, whatever the
        busy timeout.
        """
        with self._transaction("BEGIN IMMEDIATE"):
            yield
            self._check_in_place()

    @contextmanager
    def snapshot(self) -> Generator[None, None, None]:
        """A read transaction: every statement in it sees the same state of the database."""
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Generator[None, None, None]:
        self.connection.execute(begin)
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def checkpoint(self, seconds: float, *, truncate: bool) -> None:
        """Write the WAL into the database, and with `truncate` empty it, as far as readers let that be within so many
        seconds."""
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        self.connection.set_busy_timeout(int(seconds * 1000))
        try:
            with suppress(apsw.BusyError, apsw.LockedError):
                self.connection.wal_checkpoint(mode=mode)
        finally:
            self.connection.set_busy_timeout(self._busy_timeout_ms)

    def fault(self, error: apsw.Error) -> QedgeError | None:
        """What to end a run with because of `error`; None if it is of a document alone.

        sqlite-vec reports in words of its own what it meets in a damaged file, so for its errors the file is read.
        """
        if is_of_the_machine(error):
            self.spoiled = not isinstance(error, (apsw.BusyError, apsw.LockedError, apsw.ReadOnlyError))
            return database_error(error, self.path)
        if isinstance(error, apsw.SQLError):
            try:
                problem = str(self.connection.pragma("quick_check", 1))
            except apsw.Error as found:
                return database_error(found, self.path)
            unread = re.search(r"unable to get the page\. error code=(\d+)", problem)
            if unread and int(unread[1]) & 0xFF == apsw.SQLITE_IOERR:  # its low byte is the kind
                return database_error(apsw.IOError("disk I/O error"), self.path)
            if problem != "ok":
                return QedgeError(6204, f"{self.path} is damaged: {error}")
        return None

    def _look(self) -> tuple[int, int] | None:
        """By what the file is told from another one of its name; None if it is gone."""
        try:
            facts = os.stat(self.path)
        except OSError:
            return None
        return facts.st_dev, facts.st_ino

    def _check_in_place(self) -> None:
        """SQLite goes on writing into a file that was deleted, and all of it would be lost when it is closed."""
        if self._look() != self._identity:
            raise QedgeError(
                6205,
                f"{self.path} was deleted, moved or replaced while it was written to",
                remedy="put the file back, or run again to make a new one (from Python, with a pipeline opened anew)",
            )

    def close(self) -> None:
        self.connection.close()


def _make_writable(path: Path) -> None:
    """Refuse a file that may not be written to before SQLite opens it, which would leave -wal and -shm files that are
    read-only too. Where a reader has left such files, they get the database's mode."""
    for file in (path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))):
        if file.exists() and not os.access(file, os.W_OK):
            if file is not path:
                with suppress(OSError):
                    file.chmod(path.stat().st_mode & 0o777)
                    if os.access(file, os.W_OK):
                        continue
                if not file.exists():  # meanwhile the last other connection was closed, and took it away
                    continue
            raise QedgeError(
                6205,
                f"{file} is read-only",
                remedy=f"let {file.name} be written to, for example with chmod u+w, then run again",
            )
