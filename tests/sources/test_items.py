"""Items and streams that are not files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

import pytest

from qedge_dagster.errors import QedgeError
from qedge_dagster.sources import ItemsSource, SourceItem, StreamSource, UnlistedPart, reopenable
from qedge_dagster.sources.items import BUFFER_BYTES


class _Pipe(io.RawIOBase):
    """A stream that can be read once, like a socket; short reads included."""

    def __init__(self, content: bytes) -> None:
        self._source = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        return self._source.readinto(memoryview(buffer)[:1000])


def _item(name: str, content: bytes = b"") -> SourceItem:
    return SourceItem(name, "text/plain", lambda: io.BytesIO(content))


def _opener(content: bytes) -> tuple[SourceItem, list[_Pipe]]:
    opened: list[_Pipe] = []

    def open_pipe() -> BinaryIO:
        opened.append(_Pipe(content))
        return opened[-1]  # type: ignore[return-value]

    return SourceItem("a", "text/plain", open_pipe), opened


def test_list_and_factory() -> None:
    """A list and a function that makes an iterator can both be listed again and again, in their order."""

    def factory() -> Iterator[SourceItem]:
        yield from (_item("b"), _item("a"))

    for items in ([_item("b"), _item("a")], factory):
        source = ItemsSource(items, "mine")
        for _ in range(2):
            listed = list(source.items())
            assert [item.document_id for item in listed if isinstance(item, SourceItem)] == ["b", "a"]


def test_generator_is_refused() -> None:
    """A generator would look like an emptied source the second time."""
    with pytest.raises(QedgeError) as caught:
        ItemsSource((_item(name) for name in "ab"), "mine")
    assert caught.value.code == 6005


def test_listing_that_fails_at_once() -> None:
    """A store that cannot be reached is an unavailable source, not an empty one."""

    def factory() -> Iterator[SourceItem]:
        raise ConnectionError("secret url")

    with pytest.raises(QedgeError) as caught:
        list(ItemsSource(factory, "mine").items())
    assert caught.value.code == 6051
    assert "secret" not in caught.value.message


def test_listing_that_breaks_off() -> None:
    """What was listed stands, and the rest is reported as unlisted."""

    def factory() -> Iterator[SourceItem]:
        yield _item("a")
        raise ConnectionError

    first, rest = ItemsSource(factory, "mine").items()
    assert isinstance(first, SourceItem)
    assert rest == UnlistedPart("mine", "ConnectionError")


def test_seekable_streams_are_opened_each_time() -> None:
    """A lease or credential is taken on each call and given back on each close."""
    opened: list[io.BytesIO] = []

    def open_stream() -> BinaryIO:
        opened.append(io.BytesIO(b"text"))
        return opened[-1]

    (item,) = StreamSource("a", "text/plain", open_stream, "mine").items()
    for _ in range(2):
        with item.open() as stream:
            assert stream.read() == b"text"
    assert len(opened) == 2
    assert all(stream.closed for stream in opened)


@pytest.mark.parametrize("size", [0, 1, 100_000, BUFFER_BYTES])
def test_pipe_is_read_once_and_opened_again_from_memory(size: int) -> None:
    """Up to the limit a stream that cannot be rewound is buffered whole, and closed."""
    content = bytes(size)
    item, opened = _opener(content)
    item = reopenable(item)
    for _ in range(2):
        with item.open() as stream:
            assert stream.read() == content
    assert len(opened) == 1
    assert opened[0].closed


def test_same_pipe_each_time() -> None:
    """One and the same one-shot stream, standard input say, is enough."""
    pipe = _Pipe(b"text")
    (item,) = StreamSource("a", "text/plain", lambda: pipe, "mine").items()  # type: ignore[arg-type,return-value]
    assert [item.open().read(), item.open().read()] == [b"text", b"text"]


def test_pipe_over_the_limit() -> None:
    """It fails the document, is closed, and the message has the limit."""
    item, opened = _opener(bytes(BUFFER_BYTES + 1))
    with pytest.raises(QedgeError) as caught:
        reopenable(item).open()
    assert caught.value.code == 6053
    assert str(BUFFER_BYTES) in caught.value.message
    assert opened[0].closed


def test_same_seekable_stream_each_time_is_named() -> None:
    """A stream that was closed by its first reader fails with what to do, not with a puzzle."""
    stream = io.BytesIO(b"text")
    (item,) = StreamSource("a", "text/plain", lambda: stream, "mine").items()
    item.open().close()
    with pytest.raises(QedgeError) as caught:
        item.open()
    assert caught.value.code == 6053
    assert "fresh" in caught.value.message


def test_ids_are_checked() -> None:
    """Ids with control characters are refused where they are given."""
    for make in (lambda: ItemsSource([], "a\n"), lambda: StreamSource("", "text/plain", io.BytesIO, "mine")):
        with pytest.raises(QedgeError) as caught:
            make()
        assert caught.value.code == 6055
