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
_MAX_COORDINATE, _MIN_NEAR = 1e9, 1e-6
#: Number of a cell: this times its row, and its column.
_ROW = 1 << 40


class DrawnGlyphs:
    """Those of a page, by text, direction and size, in cells as wide as their size asks for."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, int, float], dict[int, list[complex]]] = {}
        self._kept = 0
        self._size = self._cell = 0.0

    def repeats(self, glyph: Glyph) -> bool:
        """Whether it says what one of about the same size says at nearly the same place. If not, it is kept in mind."""
        size, start, base = glyph.size, glyph.start, glyph.base
        near = min(_NEAR * size, (glyph.end - start) / 2)
        # No such place, or none that could be told from others; the comparison fails for NaN as well.
        if not glyph.text or not (near > _MIN_NEAR and size + abs(start) + abs(base) < _MAX_COORDINATE):
            return False
        if size != self._size:
            self._size, self._cell = size, _CELL * 2.0 ** round(log2(size))
        cell = self._cell
        key = (glyph.text, glyph.angle, cell)
        places = self._cells.get(key)
        if places is None:
            places = self._cells[key] = {}
        place = complex(start, base)
        corner = floor(base / cell - 0.5) * _ROW + floor(start / cell - 0.5)
        for number in (corner, corner + 1, corner + _ROW, corner + _ROW + 1):
            if number in places:
                for other in places[number]:
                    if abs(other - place) <= near:
                        return True
        self._keep(places.setdefault(floor(base / cell) * _ROW + floor(start / cell), []), place)
        return False

    def _keep(self, places: list[complex], place: complex) -> None:
        places.append(place)
        del places[:-_MAX_OF_CELL]
        self._kept += 1
        if self._kept >= _MAX_KEPT:
            self._cells.clear()
            self._kept = 0
