"""What a font says of its characters, within bounds: a few bytes may claim thousands of millions of them."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from typing import Any

from pdfminer.cmapdb import CMapBase, CMapParser
from pdfminer.pdftypes import resolve1
from pdfminer.psparser import PSKeyword

__all__ = ["bounded_widths", "read_letters"]

#: Character codes have two bytes; the few fonts with longer ones have no ranges as wide.
_MAX_CODE = 0xFFFF
#: Of all ranges of a font together: dozens of fonts are kept.
_MAX_IN_RANGES = 0x10000
#: What one glyph may say, in bytes.
_MAX_LETTERS = 256


def bounded_widths(widths: Iterable[object], size: int) -> list[Any]:
    """Without what lies beyond the codes there are. A range is given by `size` numbers, the first two its ends; a list
    follows the code that it begins at."""
    bounded: list[Any] = []
    numbers: list[Any] = []
    left = _MAX_IN_RANGES
    for value in map(resolve1, widths):
        if isinstance(value, list):
            bounded += [*numbers[-1:], value]
            numbers = []
        elif isinstance(value, (int, float)):
            numbers.append(value)
        if len(numbers) == size:
            first, last, *width = numbers
            numbers = []
            if isinstance(first, int) and isinstance(last, int):
                first = max(first, 0)
                last = min(last, _MAX_CODE, first + left)
                left -= max(0, last - first)
                bounded += [first, last, *width]
    return bounded


def read_letters(data: bytes, letters: CMapBase) -> None:
    """Add to `letters` what the map from codes to text in `data` says."""
    _BoundedParser(letters, BytesIO(data)).run()


class _BoundedParser(CMapParser):
    def __init__(self, letters: CMapBase, stream: BytesIO) -> None:
        super().__init__(letters, stream)
        self._left = _MAX_IN_RANGES

    def do_keyword(self, pos: int, token: PSKeyword) -> None:
        if token in (self.KEYWORD_ENDBFRANGE, self.KEYWORD_ENDCIDRANGE):
            values = self.popall()
            for start in range(0, len(values) - 2, 3):
                self._push_range(*values[start : start + 3])
        elif token is self.KEYWORD_ENDBFCHAR:
            values = self.popall()
            self.push(
                *((place, value[:_MAX_LETTERS] if isinstance(value, bytes) else value) for place, value in values)
            )
        super().do_keyword(pos, token)

    def _push_range(self, first: tuple[int, Any], last: tuple[int, Any], text: tuple[int, Any]) -> None:
        """Shortened, if it is too long; lists are as long as they are."""
        if isinstance(first[1], bytes) and isinstance(last[1], bytes) and not isinstance(text[1], list):
            start, end = int.from_bytes(first[1], "big"), int.from_bytes(last[1], "big")
            if end - start > min(self._left, _MAX_CODE):
                end = start + min(self._left, _MAX_CODE)
                last = last[0], end.to_bytes(len(last[1]), "big")
            self._left -= max(0, end - start)
            if isinstance(text[1], bytes):
                text = text[0], text[1][-_MAX_LETTERS:]
        self.push(first, last, text)
