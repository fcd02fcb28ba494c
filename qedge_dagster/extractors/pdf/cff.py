"""Which letters the codes of a compact font (CFF) stand for, by the font's own encoding.

Needed where a document does not say: the library reads the encoding of older fonts only.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from pdfminer.encodingdb import EncodingDB, name2unicode

__all__ = ["own_encoding"]

_CHARSET, _ENCODING, _CHAR_STRINGS = 15, 16, 17
#: Names with smaller numbers are not in the font, but in the format.
_FIRST_STRING = 391
# The first of those are the glyphs of the standard encoding, in its order; the others are rare.
_STANDARD = dict(enumerate((letter for _, letter in sorted(EncodingDB.std2unicode.items())), 1))


def own_encoding(data: bytes) -> dict[int, str]:
    """Code → text; empty if the font has none of its own. Raises `ValueError` or `IndexError` for broken fonts."""
    _, position = _index(data, data[2])
    dictionaries, position = _index(data, position)
    strings, _ = _index(data, position)
    entries = dict(_dictionary(dictionaries[0]))
    encoding = entries.get(_ENCODING, 0)
    if encoding < 2:
        return {}
    glyphs, _ = _index(data, entries[_CHAR_STRINGS])
    names = _charset(data, entries.get(_CHARSET, 0), len(glyphs))
    letters: dict[int, str] = {}
    for code, glyph in _codes(data, encoding):
        letter = _letter(names[glyph], strings) if glyph < len(names) else None
        if letter:
            letters[code] = letter
    return letters


def _number(data: bytes, position: int, size: int) -> int:
    if not 0 <= position <= len(data) - size:
        raise IndexError
    return int.from_bytes(data[position : position + size], "big")


def _index(data: bytes, position: int) -> tuple[list[bytes], int]:
    """The parts of an index, and the place after it."""
    count = _number(data, position, 2)
    if not count:
        return [], position + 2
    size = _number(data, position + 2, 1)
    offsets = [_number(data, position + 3 + size * number, size) for number in range(count + 1)]
    base = position + 2 + size * (count + 1)
    parts = [data[base + start : base + end] for start, end in pairwise(offsets)]
    return parts, base + offsets[-1]


def _dictionary(data: bytes) -> Iterator[tuple[int, int]]:
    """Operators with their last operand. Fractions are of no interest, nor are operators of two bytes."""
    operand, position = 0, 0
    while position < len(data):
        byte = data[position]
        position += 1
        if byte == 12:
            position += 1
        elif byte <= 21:
            yield byte, operand
        elif byte in (28, 29):
            size = 2 if byte == 28 else 4
            operand = _number(data, position, size)
            position += size
        elif byte == 30:
            while data[position] & 0x0F != 0x0F and data[position] >> 4 != 0x0F:
                position += 1
            position += 1
        elif byte <= 246:
            operand = byte - 139
        else:
            high = (byte - 247) * 256 if byte <= 250 else (251 - byte) * 256
            operand = high + data[position] + 108 if byte <= 250 else high - data[position] - 108
            position += 1


def _charset(data: bytes, position: int, count: int) -> list[int]:
    """The numbers of the glyphs' names."""
    if position < 3:
        return list(range(count))
    kind = _number(data, position, 1)
    position += 1
    names = [0]
    while len(names) < count:
        first = _number(data, position, 2)
        left = _number(data, position + 2, kind) if kind else 0
        names += range(first, first + left + 1)
        position += 2 + kind
    return names


def _codes(data: bytes, position: int) -> Iterator[tuple[int, int]]:
    """Codes and their glyphs; the first glyph is that of unknown characters."""
    kind = _number(data, position, 1) & 0x7F
    glyph = 1
    for number in range(_number(data, position + 1, 1)):
        first = _number(data, position + 2 + number * (kind + 1), 1)
        left = _number(data, position + 3 + number * 2, 1) if kind else 0
        for code in range(first, first + left + 1):
            yield code, glyph
            glyph += 1


def _letter(name: int, strings: list[bytes]) -> str | None:
    if name < _FIRST_STRING:
        return _STANDARD.get(name)
    try:
        return name2unicode(strings[name - _FIRST_STRING].decode("ascii"))
    except (KeyError, ValueError, IndexError):
        return None
