"""Writes the smallest ONNX models that a test can read by eye, without the `onnx` package.

An ONNX file is one protobuf message. The numbers below are the field numbers of onnx.proto3.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

FLOAT, INT32, INT64 = 1, 6, 7
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    dims = b"".join(_field(1, _field(1 if isinstance(dim, int) else 2, dim)) for dim in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, dims)))


def _node(kind: str, inputs: Sequence[str], output: str, attributes: bytes = b"") -> bytes:
    return b"".join(_field(1, name) for name in inputs) + _field(2, output) + _field(4, kind) + attributes


def _int_attribute(name: str, value: int) -> bytes:
    return _field(5, _field(1, name) + _field(3, value) + _field(20, 2))


def _ints_attribute(name: str, value: int) -> bytes:
    return _field(5, _field(1, name) + _field(8, value) + _field(20, 7))


def write_model(
    path: Path,
    table: np.ndarray,
    *,
    inputs: Sequence[str] = INPUTS,
    kind: int = INT64,
    output: str = "last_hidden_state",
    sentence: bool = False,
    declare_width: bool = True,
) -> Path:
    """A model whose vector of a token is its row in `table`; with `sentence`, the plain mean over all positions."""
    rows, width = table.shape
    shape = ["batch", width if declare_width else "width"]
    nodes = _field(1, _node("Gather", ["table", inputs[0]], "tokens" if sentence else output))
    if sentence:
        attributes = _ints_attribute("axes", 1) + _int_attribute("keepdims", 0)
        nodes += _field(1, _node("ReduceMean", ["tokens"], output, attributes))
    else:
        shape.insert(1, "sequence")
    data = table.astype("<f4").tobytes()
    weights = _field(1, rows) + _field(1, width) + _field(2, FLOAT) + _field(8, "table") + _field(9, data)
    graph = (
        nodes
        + _field(2, "tiny")
        + _field(5, weights)
        + b"".join(_field(11, _value(name, kind, ["batch", "sequence"])) for name in inputs)
        + _field(12, _value(output, FLOAT, shape))
    )
    path.write_bytes(_field(1, 8) + _field(8, _field(1, "") + _field(2, 13)) + _field(7, graph))
    return path
