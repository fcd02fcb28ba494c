"""What the process that extracts and the one that asks it say to each other: frames on a pipe.

A frame is a kind, a length and so many bytes. Nothing in it is executed: a value is JSON, a document is its own bytes.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, fields
from typing import Any, BinaryIO, Literal

from qedge_dagster.documents import DocumentBlock, ExtractedDocument
from qedge_dagster.errors import Failure

__all__ = [
    "Frame",
    "FrameError",
    "document_from",
    "document_to",
    "read_data",
    "read_frame",
    "read_head",
    "write_frame",
    "write_json",
]

Frame = Literal[b"J", b"D", b"E"]  # JSON, data, end of the data

_HEAD = struct.Struct("<cQ")
# Far above any document that has passed the limit of its size; below what a stray byte could make of a length.
_LARGEST = 1 << 32


class FrameError(Exception):
    """The other side has gone, or says something that is no frame."""


def write_frame(stream: BinaryIO, kind: Frame, data: bytes = b"") -> None:
    stream.write(_HEAD.pack(kind, len(data)))
    stream.write(data)


def write_json(stream: BinaryIO, value: object) -> None:
    # ASCII: lone surrogates, which UTF-8 cannot hold, go through as escapes.
    write_frame(stream, b"J", json.dumps(value, ensure_ascii=True, allow_nan=False).encode("ascii"))
    stream.flush()


def read_frame(stream: BinaryIO) -> tuple[bytes, bytes]:
    """Kind and data. Raises `FrameError`."""
    kind, length = read_head(stream)
    return kind, read_data(stream, length)


def read_head(stream: BinaryIO) -> tuple[bytes, int]:
    """Kind of a frame, and the length of its data in bytes. Raises `FrameError`."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise FrameError("the pipe has ended")
    kind, length = _HEAD.unpack(head)
    if kind not in (b"J", b"D", b"E") or length > _LARGEST:
        raise FrameError("what came is no frame")
    return kind, length


def read_data(stream: BinaryIO, length: int) -> bytes:
    """The data of a frame whose head was read. Raises `FrameError`."""
    data = stream.read(length)
    if len(data) < length:
        raise FrameError("the pipe has ended")
    return data


def document_to(document: ExtractedDocument) -> dict[str, Any]:
    """As JSON holds it; metadata that JSON does not hold as it is raises `TypeError`."""
    metadata = dict(document.metadata)
    if json.loads(json.dumps(metadata)) != metadata:
        raise TypeError("metadata must be of strings, numbers, booleans, None, lists and dicts with strings as keys")
    plain = {field.name: getattr(document, field.name) for field in fields(document)}
    blocks = [(b.kind, b.start, b.end, b.heading_level, b.page) for b in document.blocks]
    incomplete = document.incomplete and asdict(document.incomplete)
    return {
        **plain,
        "blocks": blocks,
        "metadata": metadata,
        "warnings": list(document.warnings),
        "incomplete": incomplete,
    }


def document_from(value: dict[str, Any]) -> ExtractedDocument:
    value["blocks"] = tuple(DocumentBlock(*block) for block in value["blocks"])
    value["warnings"] = tuple(value["warnings"])
    value["incomplete"] = value["incomplete"] and Failure(**value["incomplete"])
    return ExtractedDocument(**value)
