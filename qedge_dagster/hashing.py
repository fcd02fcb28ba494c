"""Content hashes and chunk identity (xxHash128, 16 bytes big-endian, 32 lower-case hex digits in text)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import BinaryIO

from xxhash import xxh3_128

__all__ = [
    "HASH_ALGORITHM",
    "ByteLimitExceeded",
    "chunk_key",
    "content_hash",
    "content_hash_of_bytes",
    "hash_fields",
    "hash_stream",
]

HASH_ALGORITHM = "xxh128-v1"
_READ_BYTES = 64 * 1024
_SEPARATOR = b"\x1f"


class ByteLimitExceeded(Exception):
    """The stream is longer than allowed; `read` is how many bytes had been read by then."""

    def __init__(self, read: int) -> None:
        super().__init__(read)
        self.read = read


def content_hash(text: str) -> bytes:
    """Hash of the UTF-8 bytes of `text`, 16 bytes. Raises `UnicodeEncodeError` for a lone surrogate."""
    return content_hash_of_bytes(text.encode())


def content_hash_of_bytes(utf8: bytes) -> bytes:
    return xxh3_128(utf8).digest()


def hash_stream(stream: BinaryIO, limit: int, between: Callable[[], None] = lambda: None) -> tuple[bytes, int]:
    """Hash a stream in 64 KiB reads; returns the 16-byte digest and the number of bytes.

    Raises `ByteLimitExceeded` as soon as more than `limit` bytes were read, and what `between`, which is called after
    each read, raises.
    """
    hasher = xxh3_128()
    total = 0
    while data := stream.read(_READ_BYTES):
        total += len(data)
        if total > limit:
            raise ByteLimitExceeded(total)
        hasher.update(data)
        between()
    return hasher.digest(), total


def hash_fields(fields: Iterable[object]) -> bytes:
    """Hash of `str(field)` for each field, each followed by 0x1F; 16 bytes. Raises as `content_hash` does."""
    hasher = xxh3_128()
    for field in fields:
        hasher.update(str(field).encode())
        hasher.update(_SEPARATOR)
    return hasher.digest()


def chunk_key(source_id: str, document_id: str, chunk_hash: bytes, duplicate_ordinal: int) -> str:
    """The identity of a chunk: where it is from, what it says, and which of its equals it is.

    Ordinal and offsets are not part of it, so a chunk that only moves keeps its key.
    """
    parts = (content_hash(source_id), content_hash(document_id), chunk_hash, duplicate_ordinal.to_bytes(16, "big"))
    return xxh3_128(_SEPARATOR.join(parts)).hexdigest()
