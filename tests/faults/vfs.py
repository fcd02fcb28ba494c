"""SQLite's own file layer, with faults: what it opens, writes, syncs, truncates, deletes, reads and maps is counted,
may be made to fail, and may be written down to be replayed up to any point.

The functions of the default VFS are replaced in memory, so that nothing needs to know of it, and so that SQLite gets a
result code and no more. A VFS written in Python would leave its exception behind even where SQLite has coped: a
checkpoint that fails after a commit is no error of the statement.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import apsw

__all__ = ["FULL", "IOERR", "OK", "SHORT", "FaultyFiles", "Kind", "Operation", "faulty_files"]

Kind = Literal["open", "write", "truncate", "sync", "delete", "read", "map"]

OK = 0
#: The disk is full, and half of what was to be written is there.
SHORT = -1
IOERR, FULL = apsw.SQLITE_IOERR, apsw.SQLITE_FULL
_EXTENDED: dict[Kind, int] = {
    "write": apsw.SQLITE_IOERR_WRITE,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "delete": apsw.SQLITE_IOERR_DELETE,
    "read": apsw.SQLITE_IOERR_READ,
    "map": apsw.SQLITE_IOERR_SHMMAP,
    "open": apsw.SQLITE_CANTOPEN,
}

_pointer, _int, _int64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_on_file = {
    "xClose": ctypes.CFUNCTYPE(_int, _pointer),
    "xRead": ctypes.CFUNCTYPE(_int, _pointer, _pointer, _int, _int64),
    "xWrite": ctypes.CFUNCTYPE(_int, _pointer, _pointer, _int, _int64),
    "xTruncate": ctypes.CFUNCTYPE(_int, _pointer, _int64),
    "xSync": ctypes.CFUNCTYPE(_int, _pointer, _int),
    "xShmMap": ctypes.CFUNCTYPE(_int, _pointer, _int, _int, _int, _pointer),
}
# Names as pointers: SQLite keeps more behind the end of one, which a copy would lose.
_open_type = ctypes.CFUNCTYPE(_int, _pointer, _pointer, _pointer, _int, _pointer)
_delete_type = ctypes.CFUNCTYPE(_int, _pointer, _pointer, _int)


class _Methods(ctypes.Structure):
    """sqlite3_io_methods."""

    _fields_ = [
        ("iVersion", _int),
        *((name, _on_file[name]) for name in ("xClose", "xRead", "xWrite", "xTruncate", "xSync")),
        *((name, _pointer) for name in ("xFileSize", "xLock", "xUnlock", "xCheckReservedLock", "xFileControl")),
        *((name, _pointer) for name in ("xSectorSize", "xDeviceCharacteristics")),
        ("xShmMap", _on_file["xShmMap"]),
        *((name, _pointer) for name in ("xShmLock", "xShmBarrier", "xShmUnmap", "xFetch", "xUnfetch")),
    ]


class _File(ctypes.Structure):
    """sqlite3_file, where every kind of file begins."""

    _fields_ = [("methods", ctypes.POINTER(_Methods))]


class _Vfs(ctypes.Structure):
    """sqlite3_vfs, up to what is replaced."""

    _fields_ = [
        *(("iVersion", _int), ("szOsFile", _int), ("mxPathname", _int)),
        *(("pNext", _pointer), ("zName", ctypes.c_char_p), ("pAppData", _pointer)),
        *(("xOpen", _open_type), ("xDelete", _delete_type)),
    ]


@dataclass(frozen=True, slots=True)
class Operation:
    """One call. `name` is that of the file without its folder, empty for a temporary one; `new` says that an open made
    the file or that a delete or sync reached the folder too."""

    kind: Kind
    name: str
    offset: int = 0
    data: bytes = b""
    new: bool = False


class FaultyFiles:
    """What happened. `fault` is asked for each operation, with its number from 1: a result code of SQLite, or `OK`."""

    def __init__(self, fault: Callable[[int, Kind], int], *, record: bool) -> None:
        self.count = 0
        self.kinds: Counter[Kind] = Counter()
        self.operations: list[Operation] = []
        self._fault = fault
        self._record = record
        self._names: dict[int, str] = {}
        self._tables: dict[int, tuple[Any, Any]] = {}

    def asked(self, kind: Kind) -> int:
        self.count += 1
        self.kinds[kind] += 1
        code = self._fault(self.count, kind)
        return _EXTENDED[kind] if code == IOERR else code

    def done(self, code: int, kind: Kind, name: str, *args: Any) -> int:
        if code == OK and self._record and kind not in ("read", "map"):
            self.operations.append(Operation(kind, name, *args))
        return code

    def opened(self, file: int, name: str) -> None:
        """Take over a file that SQLite has just opened."""
        self._names[file] = name
        header = ctypes.cast(file, ctypes.POINTER(_File)).contents
        address = ctypes.addressof(header.methods.contents)
        if address not in self._tables:
            self._tables[address] = (header.methods.contents, self._table(header.methods.contents))
        header.methods = ctypes.pointer(self._tables[address][1])

    def _table(self, real: _Methods) -> _Methods:
        table = _Methods.from_buffer_copy(real)
        names = self._names

        def close(file: int) -> int:
            names.pop(file, None)
            return real.xClose(file)

        def read(file: int, buffer: int, size: int, offset: int) -> int:
            return self.asked("read") or real.xRead(file, buffer, size, offset)

        def write(file: int, buffer: int, size: int, offset: int) -> int:
            code = self.asked("write")
            if code == SHORT:
                real.xWrite(file, buffer, size // 2, offset)
                return FULL
            data = ctypes.string_at(buffer, size) if self._record else b""
            return code or self.done(real.xWrite(file, buffer, size, offset), "write", names[file], offset, data)

        def truncate(file: int, size: int) -> int:
            return self.asked("truncate") or self.done(real.xTruncate(file, size), "truncate", names[file], size)

        def sync(file: int, flags: int) -> int:
            return self.asked("sync") or self.done(real.xSync(file, flags), "sync", names[file])

        def shm_map(file: int, page: int, size: int, extend: int, result: int) -> int:
            return self.asked("map") or real.xShmMap(file, page, size, extend, result)

        functions = {
            "xClose": close,
            "xRead": read,
            "xWrite": write,
            "xTruncate": truncate,
            "xSync": sync,
            "xShmMap": shm_map,
        }
        for method, function in functions.items():
            setattr(table, method, _on_file[method](function))
        return table


def _default_vfs() -> Any:
    with tempfile.TemporaryDirectory() as folder, closing(apsw.Connection(os.path.join(folder, "x"))) as connection:
        found = ctypes.c_void_p()
        connection.file_control("main", apsw.SQLITE_FCNTL_VFS_POINTER, ctypes.addressof(found))
    return ctypes.cast(found, ctypes.POINTER(_Vfs)).contents


def _path(pointer: int | None) -> Path | None:
    return None if pointer is None else Path(os.fsdecode(ctypes.string_at(pointer)))


@contextmanager
def faulty_files(
    fault: Callable[[int, Kind], int] = lambda _number, _kind: OK, *, record: bool = False
) -> Generator[FaultyFiles]:
    """Every connection that is opened and closed within the context works with these files."""
    vfs = _default_vfs()
    files = FaultyFiles(fault, record=record)
    # Copies: a field of a structure is read from memory anew each time.
    real_open = _open_type(ctypes.cast(vfs.xOpen, _pointer).value or 0)
    real_delete = _delete_type(ctypes.cast(vfs.xDelete, _pointer).value or 0)

    def open_(itself: int, path: int | None, file: int, flags: int, result: int) -> int:
        code = files.asked("open")
        if code != OK:
            ctypes.memset(file, 0, ctypes.sizeof(_File))  # so that SQLite does not close it
            return code
        name = _path(path)
        is_new = name is not None and not name.exists()
        label = name.name if name is not None else ""
        code = files.done(real_open(itself, path, file, flags, result), "open", label, 0, b"", is_new)
        if code == OK:
            files.opened(file, label)
        return code

    def delete(itself: int, path: int, sync_folder: int) -> int:
        code = files.asked("delete")
        if code != OK:
            return code
        name = _path(path)
        assert name is not None
        return files.done(real_delete(itself, path, sync_folder), "delete", name.name, 0, b"", bool(sync_folder))

    vfs.xOpen, vfs.xDelete = _open_type(open_), _delete_type(delete)
    try:
        yield files
    finally:
        vfs.xOpen, vfs.xDelete = real_open, real_delete
