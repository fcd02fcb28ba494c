"""The second read of a document, held against the first: what is extracted must be what was hashed."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO, cast

from xxhash import xxh3_128

from qedge_dagster.errors import QedgeError
from qedge_dagster.hashing import ByteLimitExceeded, hash_stream

__all__ = ["CheckedOpen"]


class CheckedOpen:
    """An item's `open` for the extractor. `verify` says whether every stream it gave had the expected content."""

    def __init__(self, open_item: Callable[[], BinaryIO], expected: bytes, limit: int) -> None:
        self._open = open_item
        self._expected = expected
        self._limit = limit
        self._streams: list[_HashedStream] = []

    def __call__(self) -> BinaryIO:
        stream = _HashedStream(self._open(), self._limit)
        self._streams.append(stream)
        return cast("BinaryIO", stream)

    def verify(self) -> None:
        """Raises `QedgeError` 6053 where a read gave other content than was hashed: the file is being written to."""
        try:
            same = all(digest == self._expected for digest in map(self._digest, self._streams))
        except ByteLimitExceeded:
            same = False
        if not same:
            raise QedgeError(6053, "it changed while it was read")

    def _digest(self, stream: _HashedStream) -> bytes:
        if stream.digest is not None:
            return stream.digest
        with self._open() as again:  # the parser jumped about in it, or left it before its end
            return hash_stream(again, self._limit)[0]


class _HashedStream(io.BufferedIOBase):
    """Hashes what is read, as long as it is read from start to end without a jump. `digest` is known at the end."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self._stream = stream
        self._left = limit
        self._hasher = xxh3_128()
        self._sequential = True
        self.digest: bytes | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._stream.seekable()

    def read(self, size: int | None = -1, /) -> bytes:
        """Raises `ByteLimitExceeded` where the document has grown over its limit since it was hashed."""
        whole = size is None or size < 0
        data = self._stream.read(self._left + 1 if size is None or size < 0 else size)
        if self._sequential:
            self._left -= len(data)
            if self._left < 0:
                raise ByteLimitExceeded(-self._left)
            self._hasher.update(data)
            if whole or (size and not data):
                self.digest = self._hasher.digest()
        return data

    def read1(self, size: int = -1, /) -> bytes:
        return self.read(size)

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._sequential = False
        self.digest = None
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def close(self) -> None:
        self._stream.close()
        super().close()
