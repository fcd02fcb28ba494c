"""Files on disk as items, and a source of listed files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from datetime import date
from functools import lru_cache, partial
from typing import BinaryIO

from qedge_dagster.documents import media_type_for
from qedge_dagster.errors import QedgeError
from qedge_dagster.sources.base import SourceItem, check_id
from qedge_dagster.sources.names import document_names

__all__ = ["FilesSource", "file_item", "open_regular"]

_EPOCH = date(1970, 1, 1).toordinal()
_NONBLOCKING = getattr(os, "O_NONBLOCK", 0)


class FilesSource:
    """Listed files, in the order given. An id is the path as given, with forward slashes: give relative paths for ids
    that are the same on every machine. They are looked for below `root`, by default the current folder.

    A path that is missing or is no regular file becomes an item whose `open` fails, so the run records it and goes on.
    """

    def __init__(
        self, paths: Iterable[str | os.PathLike[str]], source_id: str, root: str | os.PathLike[str] = ""
    ) -> None:
        """Raises `QedgeError` 6055 for an unusable source id."""
        self.source_id = check_id(source_id, "source id")
        self._paths = tuple(os.fspath(path) for path in paths)
        self._root = os.fspath(root)

    def items(self) -> Iterator[SourceItem]:
        names = [os.path.normpath(path).replace(os.sep, "/") for path in self._paths]
        for given, document_id in zip(self._paths, document_names(names), strict=True):
            path = os.path.join(self._root, given)
            try:
                facts = os.stat(path)
            except OSError:
                facts = None
            yield file_item(path, document_id, facts)


def file_item(path: str, document_id: str, facts: os.stat_result | None) -> SourceItem:
    """The item of a file; without `facts` its size and time are unknown."""
    dot = document_id.rfind(".")
    return SourceItem(
        document_id,
        _media_type(document_id[dot:]) if dot > document_id.rfind("/") else "application/octet-stream",
        partial(open_regular, path),
        path,
        facts.st_size if facts else None,
        _utc(facts.st_mtime_ns) if facts else None,
    )


def open_regular(path: str) -> BinaryIO:
    """Open for reading. Anything but a regular file is `QedgeError` 6053: opening a FIFO would block the run."""
    return open(path, "rb", opener=_open_regular)


def _open_regular(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | _NONBLOCKING)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise QedgeError(6053, "not a regular file")
    return descriptor


@lru_cache(maxsize=1024)
def _media_type(suffix: str) -> str:
    return media_type_for(suffix)


def _utc(nanoseconds: int) -> str | None:
    """ISO 8601 with all nanoseconds, so that a difference of one tick shows; None outside the years 1 to 9999."""
    minute = _minute(nanoseconds // 60_000_000_000)
    if minute is None:
        return None
    digits = str(100_000_000_000 + nanoseconds % 60_000_000_000)  # faster than a format with leading zeros
    return f"{minute}{digits[1:3]}.{digits[3:]}Z"


@lru_cache(maxsize=4096)
def _minute(minutes: int) -> str | None:
    """Kept, as files often come many at a time."""
    days, minutes = divmod(minutes, 24 * 60)
    try:
        day = date.fromordinal(_EPOCH + days).isoformat()
    except (ValueError, OverflowError):
        return None
    return f"{day}T{minutes // 60:02}:{minutes % 60:02}:"
