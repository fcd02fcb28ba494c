"""The contract of a source: an id, and items enumerated lazily."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol

from qedge_dagster.errors import QedgeError

__all__ = ["Source", "SourceItem", "UnlistedPart", "check_id", "check_item"]


@dataclass(slots=True)
class SourceItem:
    """One document at its source. Not to be changed; not frozen, as that triples the cost of making one.

    `open` returns a fresh binary stream positioned at the start. It is called once to hash and once more to extract, so
    whatever it needs (a credential, a lease, a handle) it acquires, and its stream releases on close, on EACH call.
    `path` is the file's own name on disk, if it is one; `modified_utc` is compared for equality only.
    """

    document_id: str
    media_type: str
    open: Callable[[], BinaryIO]
    path: str | None = None
    size_bytes: int | None = None
    modified_utc: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class UnlistedPart:
    """A part of the source that could not be listed: yielded in place of its items, so that the run goes on with the
    rest and nothing is pruned."""

    location: str
    reason: str


class Source(Protocol):
    """Where documents come from. `source_id` is part of every chunk's identity and must be stable across runs."""

    @property
    def source_id(self) -> str: ...

    def items(self) -> Iterator[SourceItem | UnlistedPart]:
        """Enumerate afresh on each call, lazily, in an order that is the same on every machine. A run may ask for a few
        items before it opens the first of them.

        Raises `QedgeError` 6051 when the source as a whole is unavailable.
        """
        ...


def check_item(item: SourceItem) -> None:
    """Raises `QedgeError` 6055 for an item that the database could not keep: a source of the caller's own may give
    anything."""
    check_id(item.document_id, "document id")
    check_id(item.media_type, "media type")
    if item.modified_utc is not None:
        check_id(item.modified_utc, "modified_utc")
    size = item.size_bytes
    if size is not None and (type(size) is not int or not 0 <= size < 1 << 63):
        raise QedgeError(6055, f"size_bytes of {item.document_id!r} is no size")


def check_id(value: str, what: str) -> str:
    """Return `value`; raise `QedgeError` 6055 if it is no text, is empty or holds control characters or surrogates."""
    if type(value) is str and value and value.isprintable():
        return value
    if (
        type(value) is not str
        or not value
        or any(ord(c) < 32 or ord(c) == 127 or "\ud800" <= c <= "\udfff" for c in value)
    ):
        raise QedgeError(6055, f"{what} {value!r} is no text, is empty, or holds control characters or surrogates")
    return value
