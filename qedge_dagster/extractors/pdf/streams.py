"""The streams of a file, unpacked within bounds: a few kilobytes may claim to be gigabytes."""

from __future__ import annotations

import zlib
from io import BytesIO
from math import prod
from typing import Any

from pdfminer.lzw import LZWDecoder
from pdfminer.pdfparser import PDFParser
from pdfminer.pdftypes import (
    LITERALS_CCITTFAX_DECODE,
    LITERALS_FLATE_DECODE,
    LITERALS_LZW_DECODE,
    LITERALS_RUNLENGTH_DECODE,
    PDFStream,
    int_value,
)
from pdfminer.psparser import PSKeyword
from pdfminer.utils import apply_png_predictor, apply_tiff_predictor

from qedge_dagster.errors import QedgeError

__all__ = ["MAX_STREAM_BYTES", "BoundedParser"]

#: Of one stream of text, fonts or objects. Pictures, the only larger ones, are never unpacked.
MAX_STREAM_BYTES = 64 * 1024 * 1024

_RUN_LENGTH_FACTOR = 64


class BoundedParser(PDFParser):
    """Gives streams that unpack to at most `MAX_STREAM_BYTES`."""

    def do_keyword(self, pos: int, token: PSKeyword) -> None:
        super().do_keyword(pos, token)
        if token is self.KEYWORD_STREAM and self.curstack:
            position, stream = self.curstack[-1]
            if type(stream) is PDFStream and stream.rawdata is not None:
                self.curstack[-1] = (position, _BoundedStream(stream.attrs, stream.rawdata, stream.decipher))


class _BoundedStream(PDFStream):
    """Unpacks filter by filter. Raises `QedgeError` 6104 above the bound."""

    def decode(self) -> None:
        data = self.rawdata or b""
        if self.decipher is not None and self.objid is not None and self.genno is not None:
            data = self.decipher(self.objid, self.genno, data, self.attrs)
        for name, parameters in self.get_filters():
            if name in LITERALS_CCITTFAX_DECODE:
                data = b""  # a picture, whatever refers to it
            elif name in LITERALS_FLATE_DECODE:
                data = _predicted(_inflate(data), parameters)
            elif name in LITERALS_LZW_DECODE:
                data = _predicted(_unpack_lzw(data), parameters)
            else:
                if name in LITERALS_RUNLENGTH_DECODE:
                    _check(len(data) * _RUN_LENGTH_FACTOR)
                data = PDFStream({"Filter": name, "DecodeParms": parameters}, data).get_data()
        self.data, self.rawdata = data, None


def _check(size: int) -> None:
    if size > MAX_STREAM_BYTES:
        limit = MAX_STREAM_BYTES // (1024 * 1024)
        raise QedgeError(6104, f"a part of the file would unpack to more than {limit} MiB")


def _inflate(data: bytes) -> bytes:
    """What can be had of damaged data as well."""
    inflater = zlib.decompressobj()
    unpacked = bytearray()
    try:
        unpacked += inflater.decompress(data, MAX_STREAM_BYTES + 1)
    except zlib.error:
        inflater = zlib.decompressobj()
        for start in range(0, len(data), 64):  # the fault loses the rest of its part
            try:
                unpacked += inflater.decompress(data[start : start + 64])
            except zlib.error:
                break
            _check(len(unpacked))
    _check(len(unpacked))
    return bytes(unpacked)


def _unpack_lzw(data: bytes) -> bytes:
    unpacked = bytearray()
    for part in LZWDecoder(BytesIO(data)).run():
        unpacked += part
        _check(len(unpacked))
    return bytes(unpacked)


def _predicted(data: bytes, parameters: Any) -> bytes:
    """Undo the predictor, by which rows of bytes are stored as differences."""
    if not isinstance(parameters, dict):
        return data

    def number(key: str, default: int) -> int:
        return int_value(parameters.get(key, default))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]

    predictor = number("Predictor", 1)
    shape = number("Colors", 1), number("Columns", 1), number("BitsPerComponent", 8)
    _check(prod(shape) // 8)  # a row, which is made before it is filled
    if predictor == 2:
        return apply_tiff_predictor(*shape, data)
    return apply_png_predictor(predictor, *shape, data) if predictor >= 10 else data
