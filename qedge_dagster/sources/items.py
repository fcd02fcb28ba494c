"""Sources of anything that is not a file: object stores, uploads, database blobs, one stream."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import BinaryIO, TypeAlias

from qedge_dagster.errors import QedgeError
from qedge_dagster.sources.base import SourceItem, UnlistedPart, check_id

__all__ = ["BUFFER_BYTES", "ItemsSource", "StreamSource", "reopenable"]

#: The most of a non-seekable stream that is kept, so that it can be read a second time.
BUFFER_BYTES = 4 * 1024 * 1024


_Items: TypeAlias = "Iterable[SourceItem | UnlistedPart]"


class ItemsSource:
    """Items that the caller makes: a list or tuple, or a function that lists them afresh on each call.

    The id of an item must be the same in every run: an object's key, never a signed or re-issued URL. Its `open` is
    called twice, and acquires what it needs on each call. An item of unknown size is measured while it is hashed.
    """

    def __init__(self, items: _Items | Callable[[], _Items], source_id: str) -> None:
        """Raises `QedgeError` 6055 for an unusable source id, 6005 for a generator: it could be listed only once, and
        would look empty from then on."""
        self.source_id = check_id(source_id, "source id")
        if isinstance(items, Iterator):
            raise QedgeError(6005, "items can be listed only once: give a list, or the function that makes the list")
        self._list = items if callable(items) else items.__iter__

    def items(self) -> Iterator[SourceItem | UnlistedPart]:
        """In the order given. What the listing raises is 6051 before the first item; later it ends the listing with an
        `UnlistedPart`, since the items that did not come are not known to be gone."""
        begun = False
        try:
            for item in self._list():
                begun = True
                yield item if isinstance(item, UnlistedPart) else reopenable(item)
        except QedgeError:
            raise
        except Exception as error:  # whatever the client library of a store raises
            if not begun:
                raise QedgeError(6051, f"{self.source_id} cannot be listed: {type(error).__name__}") from error
            yield UnlistedPart(self.source_id, type(error).__name__)


class StreamSource:
    """One document, from whatever `open` returns."""

    def __init__(self, document_id: str, media_type: str, open: Callable[[], BinaryIO], source_id: str) -> None:  # noqa: A002 - the name of the item's field
        """Raises `QedgeError` 6055 for an unusable document or source id."""
        self.source_id = check_id(source_id, "source id")
        self._item = SourceItem(check_id(document_id, "document id"), media_type, open)

    def items(self) -> Iterator[SourceItem]:
        yield reopenable(self._item)


def reopenable(item: SourceItem) -> SourceItem:
    """The item with an `open` that may be called again even where its stream can be read only once.

    A non-seekable stream (a socket, a pipe, standard input) is read to its end and closed on the first call; later
    calls get the same bytes from memory. Longer than `BUFFER_BYTES`, it fails with `QedgeError` 6053. A seekable stream
    is passed through, and must be a fresh one on each call: one that comes back closed fails with 6053.
    """
    return replace(item, open=_Reopenable(item.open))


class _Reopenable:
    def __init__(self, open_once: Callable[[], BinaryIO]) -> None:
        self._open = open_once
        self._content: bytes | None = None

    def __call__(self) -> BinaryIO:
        if self._content is not None:
            return io.BytesIO(self._content)
        stream = self._open()
        if stream.closed:
            raise QedgeError(6053, "open returned a closed stream; it must return a fresh one on each call")
        if stream.seekable():
            return stream
        with stream:
            self._content = _read_within(stream, BUFFER_BYTES)
        return io.BytesIO(self._content)


def _read_within(stream: BinaryIO, limit: int) -> bytes:
    content = bytearray()
    while data := stream.read(64 * 1024):
        content += data
        if len(content) > limit:
            raise QedgeError(
                6053,
                f"not seekable and longer than {limit} bytes",
                remedy="give an open that returns a seekable stream, such as a temporary file",
            )
    return bytes(content)
