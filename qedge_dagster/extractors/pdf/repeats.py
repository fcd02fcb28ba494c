"""Glyphs that are drawn again where they are already: bold letters made of thin ones, shadows, outlines."""

from __future__ import annotations

from math import floor, log2

from qedge_dagster.extractors.pdf.fragments import Glyph

__all__ = ["DrawnGlyphs"]

#: In units of the font size; also less than half the width, so that the double letters of narrow fonts are two.
_NEAR = 0.1
#: Side of a cell: a glyph and those near it are in two cells next to each other, in both directions.
_CELL = 0.3
#: Glyphs that are kept in mind, of a cell and of a page; repetitions follow soon.
_MAX_OF_CELL = 8
_MAX_KEPT = 200_000
# In points: no page is as large, no letter as small.
_MAX_PLACE, _MIN_NEAR = 1e9, 1e-6
#: Number of a cell: this times its row, and its column.
_ROW = 1 << 40


class DrawnGlyphs:
    """Those of a page, by direction, size and text, in cells as wide as their size asks for."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, float], dict[str, dict[int, list[complex]]]] = {}
        self._kept = 0
        # Of the size and direction in use.
        self._size, self._angle = 0.0, -1
        self._near = self._cell = 0.0
        self._texts: dict[str, dict[int, list[complex]]] = {}

    def repeats(self, glyph: Glyph) -> bool:
        """Whether it says what one of about the same size says at nearly the same place. If not, it is kept in mind."""
        text, start, base = glyph.text, glyph.start, glyph.base
        if glyph.size != self._size or glyph.angle != self._angle:
            self._use(glyph.size, glyph.angle)
        near, half = self._near, (glyph.end - start) / 2
        if half < near:
            near = half
        # No place, or none that could be told from others; the comparisons fail for NaN as well.
        if not (text and near > _MIN_NEAR and -_MAX_PLACE < start < _MAX_PLACE and -_MAX_PLACE < base < _MAX_PLACE):
            return False
        place = complex(start, base)
        row, column = base / self._cell, start / self._cell
        number = floor(row) * _ROW + floor(column)
        places = self._texts.get(text)
        if places is None:
            places = self._texts[text] = {}
        else:
            corner = floor(row - 0.5) * _ROW + floor(column - 0.5)
            for beside in (corner, corner + 1, corner + _ROW, corner + _ROW + 1):
                if beside in places:
                    for other in places[beside]:
                        if abs(other - place) <= near:
                            return True
        if number in places:
            places[number].append(place)
            del places[number][:-_MAX_OF_CELL]
        else:
            places[number] = [place]
        self._kept += 1
        if self._kept >= _MAX_KEPT:
            self._forget()
        return False

    def _use(self, size: float, angle: int) -> None:
        self._size, self._angle = size, angle
        if not _MIN_NEAR < size < _MAX_PLACE:
            self._near = 0.0
            return
        self._near, self._cell = _NEAR * size, _CELL * 2.0 ** round(log2(size))
        self._texts = self._cells.setdefault((angle, self._cell), {})

    def _forget(self) -> None:
        self._cells.clear()
        self._kept = 0
        self._use(self._size, self._angle)
