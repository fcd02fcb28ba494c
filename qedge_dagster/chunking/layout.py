"""A document as a chunker sees it: units of text in order, tables with their headers, and where words start."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from qedge_dagster.chunking.candidates import SOME, Codes, Positions, one_of, rank, rarities
from qedge_dagster.chunking.graphemes import Graphemes
from qedge_dagster.chunking.sentences import sentence_starts
from qedge_dagster.documents import UNKNOWN_PAGE, BlockKind, ExtractedDocument
from qedge_dagster.errors import QedgeError

__all__ = ["Layout", "Table", "Unit"]

_WHITE_SPACE = frozenset(code for code in range(0x3001) if chr(code).isspace())
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n\s*")
_LETTER = re.compile(r"[^\W\d_]")
_HEADING_MARK = re.compile(r"[ \t]{0,3}#{1,6}[ \t]*")
_CLOSING_MARK = re.compile(r"[ \t]*#*[ \t]*")
_UNDERLINE = re.compile(r"\n {0,3}(=+|-+)[ \t]*(?=\n|\Z)")

_SLICE = 1 << 20

#: A run of units of such a kind is one thing.
_RUNS: frozenset[BlockKind] = frozenset({"list_item", "table_row"})

#: In these a line means something.
_LINED: frozenset[BlockKind] = frozenset({"code", "list_item", "table_row"})

#: The end of one of these is no use as the beginning of a chunk.
_NO_OVERLAP: frozenset[BlockKind] = frozenset({"code", "table_row"})


@dataclass(frozen=True, slots=True)
class Unit:
    """A block, or text between blocks. It reaches to the start of the next unit; `end` is where its own text ends."""

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    page: int = UNKNOWN_PAGE
    title: tuple[int, int] | None = None  # of a heading: its span without marks


@dataclass(frozen=True, slots=True)
class Table:
    """Consecutive rows; `[start, header_end)` is the header, with the rule under it where the format has one."""

    start: int
    header_end: int
    end: int


class Layout:
    """Units, and every place where the text may be cut, by rank. Built once for a document.

    Blocks that overlap, are out of order or lie outside the text are clipped and sorted; text that no block covers
    becomes units of its own. Raises `QedgeError` 6102 for text that cannot be encoded (lone surrogates).
    """

    def __init__(self, document: ExtractedDocument) -> None:
        self.text = text = document.text
        self.codes = _codes(text)
        self.graphemes = Graphemes(text, self.codes)
        self.word_starts, self.word_ends = _words(self.codes)
        self.units = _units(document)
        self._starts = [unit.start for unit in self.units]
        self.tables = _tables(text, self.units)
        self._table_starts = [table.start for table in self.tables]

    # -- units ---------------------------------------------------------------------------------------------------

    def unit_at(self, position: int) -> Unit:
        return self.units[self.unit_index(position)]

    def unit_index(self, position: int) -> int:
        return max(0, bisect_right(self._starts, position) - 1)

    def starts_unit(self, position: int) -> bool:
        index = bisect_left(self._starts, position)
        return index < len(self._starts) and self._starts[index] == position

    def starting_units(self, positions: Positions) -> npt.NDArray[np.bool_]:
        starts = np.asarray(self._starts, dtype=np.int64)
        indexes = np.minimum(starts.searchsorted(positions), len(starts) - 1)
        return starts[indexes] == positions

    def table_at(self, position: int) -> Table | None:
        """The table whose header has to be repeated before `position`."""
        index = bisect_right(self._table_starts, position) - 1
        if index < 0:
            return None
        table = self.tables[index]
        return table if table.header_end < position < table.end else None

    def overlap_floor(self, position: int) -> int:
        """How far back text before `position` may be repeated: not into code or a table that ends there."""
        index = self.unit_index(position)
        unit = self.units[index]
        if unit.start < position and unit.kind in _NO_OVERLAP:
            return unit.start
        return int(self._floors[index])

    @cached_property
    def _floors(self) -> npt.NDArray[np.int64]:
        """For each unit the end of the last code or table before it."""
        floors = np.zeros(len(self.units), dtype=np.int64)
        for index, unit in enumerate(self.units[:-1]):
            if unit.kind in _NO_OVERLAP:
                floors[index + 1] = self.units[index + 1].start
        return np.maximum.accumulate(floors)

    def trim(self, start: int, end: int) -> tuple[int, int]:
        """`[start, end)` without white space at its ends; empty if there is nothing else."""
        index = rank(self.word_ends, start, "right")
        if index == len(self.word_ends) or self.word_starts[index] >= end:
            return start, start
        first = max(start, int(self.word_starts[index]))
        last = min(end, int(self.word_ends[rank(self.word_starts, end) - 1]))
        if first > start and self.graphemes.keeps_space_before(first):
            first -= 1
        if last < end and self.graphemes.keeps_space_after(last):
            last += 1
        return first, last

    def trimmed_ends(self, ends: Positions) -> Positions:
        """For each of the ends the end of the last word that starts before it."""
        indexes = self.word_starts.searchsorted(ends.astype(np.int32)) - 1
        return np.where(indexes < 0, 0, np.minimum(ends, self.word_ends[indexes]))

    # -- where to cut, best first ----------------------------------------------------------------------------------

    @cached_property
    def headings(self) -> Positions:
        """Before headings, those that split and those that do not."""
        return self._whole([unit.start for unit in self.units[1:] if unit.kind == "heading"])

    @cached_property
    def paragraphs(self) -> Positions:
        """Between units of different kinds, or between paragraphs; not between a heading and what follows it."""
        return self._unit_breaks(weak=False)

    @cached_property
    def items(self) -> Positions:
        """Between list items, and between rows of a table."""
        return self._unit_breaks(weak=True)

    @cached_property
    def sentences(self) -> Positions:
        """Where sentences start, and lines where lines have a meaning."""
        sentences = sentence_starts(self.text, self.codes, self.word_starts, self.word_ends)
        if not any(unit.kind in _LINED for unit in self.units):
            return self._clean(sentences)
        starts = np.asarray(self._starts, dtype=np.int64)
        lined = np.asarray([unit.kind in _LINED for unit in self.units])
        code = np.asarray([unit.kind == "code" for unit in self.units])
        lines = self.lines
        sentences = sentences[~code[np.maximum(starts.searchsorted(sentences, "right") - 1, 0)]]
        lines = lines[lined[np.maximum(starts.searchsorted(lines, "right") - 1, 0)]]
        return self._clean(np.union1d(sentences, lines))

    @cached_property
    def lines(self) -> Positions:
        newlines = np.flatnonzero(self.codes == ord("\n")).astype(np.int32)
        indexes = np.unique(self.word_starts.searchsorted(newlines))
        return self._clean(self.word_starts[indexes[indexes < len(self.word_starts)]])

    @cached_property
    def some_words(self) -> Positions:
        """Enough places for a paragraph that is one long sentence."""
        return self.words[self.rarities[self.words] >= SOME]

    @cached_property
    def rarities(self) -> npt.NDArray[np.uint8]:
        return rarities(self.codes)

    @cached_property
    def words(self) -> Positions:
        return self._clean(self.word_starts)

    @cached_property
    def overlap_starts(self) -> Positions:
        """Where repeated text may start: any unit, sentence or meaningful line."""
        return np.union1d(np.union1d(self.paragraphs, self.items), self.sentences)

    def _unit_breaks(self, weak: bool) -> Positions:
        tables = set(self._table_starts)
        found = [
            unit.start
            for before, unit in zip(self.units, self.units[1:], strict=False)
            if before.kind != "heading"
            and (before.kind == unit.kind and unit.kind in _RUNS and unit.start not in tables) is weak
        ]
        return self._whole(found)

    def _whole(self, starts: list[int]) -> Positions:
        """Those of the units' starts that lie in no cluster: a block may start anywhere."""
        kept = [start for start in starts if self.text[start - 1].isspace() or self.graphemes.breaks_at(start)]
        return self._clean(np.asarray(kept, dtype=np.int64))

    def _clean(self, positions: Positions) -> Positions:
        return self.graphemes.clean_starts(positions.astype(np.int32, copy=False))


def _codes(text: str) -> Codes:
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    try:
        wide = text.encode("utf-16-le")
    except UnicodeEncodeError as error:
        surrogates = sum("\ud800" <= c <= "\udfff" for c in text)
        raise QedgeError(6102, f"the extractor left {surrogates} lone surrogates in the text") from error
    if len(wide) == 2 * len(text):
        return np.frombuffer(wide, dtype=np.uint16)
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)


def _words(codes: Codes) -> tuple[Positions, Positions]:
    """Where runs of characters that are not white space start and end, found slice by slice to save memory."""
    edges: list[Positions] = []
    outside = True
    for begin in range(0, len(codes), _SLICE):
        space = one_of(codes[begin : begin + _SLICE], _WHITE_SPACE)
        before = np.concatenate(([outside], space[:-1]))
        edges.append((begin + np.flatnonzero(space != before)).astype(np.int32))
        outside = bool(space[-1])
    if not outside:
        edges.append(np.asarray([len(codes)], dtype=np.int32))
    flips = np.concatenate(edges) if edges else np.zeros(0, dtype=np.int32)
    return flips[::2].copy(), flips[1::2].copy()


def _units(document: ExtractedDocument) -> list[Unit]:
    text = document.text
    units: list[Unit] = []
    position = 0
    for block in sorted(document.blocks, key=lambda block: (block.start, block.end)):
        start, end = max(block.start, position), min(block.end, len(text))
        if end <= start:
            continue
        title = None
        if block.kind == "heading":
            title = (start, end)
            start, end = _heading_span(text, start, end, position)
        start = _fill_gap(text, position, start, units)
        units.append(Unit(block.kind, start, end, block.heading_level, block.page, title))
        position = end
    _fill_gap(text, position, len(text), units)
    if not units:  # nothing but digits or signs
        units.append(Unit("paragraph", 0, len(text)))
    return [shown for unit in units if (shown := _shown(text, unit))]


def _shown(text: str, unit: Unit) -> Unit | None:
    """The unit without leading white space; None if there is nothing else."""
    start = unit.end - len(text[unit.start : unit.end].lstrip())
    if start == unit.end:
        return None
    return unit if start == unit.start else replace(unit, start=start)


def _heading_span(text: str, start: int, end: int, floor: int) -> tuple[int, int]:
    """A title with the marks that make it a heading: they belong to it, and are no text."""
    line_start = max(text.rfind("\n", 0, start) + 1, floor)
    marked = _HEADING_MARK.fullmatch(text, line_start, start)
    if marked:
        start = line_start
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    if _CLOSING_MARK.fullmatch(text, end, line_end):
        end = line_end
        if not marked and (underline := _UNDERLINE.match(text, end)):
            end = underline.end()
    return start, end


def _fill_gap(text: str, start: int, end: int, units: list[Unit]) -> int:
    """Give the text of a gap to units of its own, or marks without a letter to a neighbour; returns where the next
    unit starts."""
    gap = text[start:end]
    if not gap.strip():
        return end
    if not _LETTER.search(gap):
        line = text.rfind("\n", start, end) + 1 or start
        if text[line:end].strip() or not units:  # a bullet or quote mark on the line of the block it belongs to
            return start + len(gap) - len(gap.lstrip())
        return end
    page = units[-1].page if units else UNKNOWN_PAGE
    position = start
    for match in _PARAGRAPH_END.finditer(text, start, end):
        units.append(Unit("paragraph", position, match.start(), page=page))
        position = match.end()
    units.append(Unit("paragraph", position, end, page=page))
    return end


def _tables(text: str, units: list[Unit]) -> list[Table]:
    tables: list[Table] = []
    first: Unit | None = None
    following: list[Unit | None] = [*units[1:], None]
    for unit, after in zip(units, following, strict=False):
        if unit.kind != "table_row":
            continue
        first = first or unit
        if after is None or after.kind != "table_row" or _BLANK_LINE.search(text, unit.end, after.start):
            tables.append(Table(first.start, first.end, unit.end))
            first = None
    return tables
