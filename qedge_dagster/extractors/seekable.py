"""Streams for parsers that go to and fro in a file."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

__all__ = ["seekable"]

_IN_MEMORY = 8 * 1024 * 1024


@contextmanager
def seekable(stream: BinaryIO) -> Generator[BinaryIO]:
    """The stream, or where it cannot seek a copy of it, in a file when it is large."""
    if stream.seekable():
        yield stream
        return
    with SpooledTemporaryFile(_IN_MEMORY) as copy:
        shutil.copyfileobj(stream, copy)
        copy.seek(0)
        yield cast(BinaryIO, copy)
