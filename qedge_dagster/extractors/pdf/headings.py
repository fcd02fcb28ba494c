"""Where the titles of an outline stand on their page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qedge_dagster.documents import BlockKind
from qedge_dagster.extractors.pdf.fragments import Fragment
from qedge_dagster.extractors.pdf.outline import OutlineEntry
from qedge_dagster.extractors.pdf.paragraphs import paragraphs_of, text_of

__all__ = ["Piece", "pieces_of"]

#: Of one title.
_MAX_LINES = 4
_NUMBER = re.compile(r"(?:chapter|section|part|appendix)?(?:[0-9]+|[ivxlc]+|[a-z])?")


@dataclass(frozen=True, slots=True)
class Piece:
    """The text of a block; `level` is 0 for all but headings."""

    kind: BlockKind
    text: str
    level: int = 0


def pieces_of(lines: Sequence[Fragment], entries: Sequence[OutlineEntry], join_hyphens: bool) -> Iterator[Piece]:
    """Paragraphs, parted by headings.

    A title is looked for after that before it: one or several lines that are the title, but for a number on the same
    line, become the heading. A title that is not found is added as a heading, at the place of the one before it or the
    top of the page, so that what follows has the right path.
    """
    keys = [_key(line.text) for line in lines] if entries else []
    position = 0
    for entry in entries:
        found = _find(keys, position, _key(entry.title))
        if found is None:
            yield Piece("heading", entry.title, entry.level)
            continue
        start, stop = found
        yield from _paragraphs(lines[position:start], join_hyphens)
        yield Piece("heading", text_of(lines[start:stop], join_hyphens).replace("\n", " "), entry.level)
        position = stop
    yield from _paragraphs(lines[position:], join_hyphens)


def _paragraphs(lines: Sequence[Fragment], join_hyphens: bool) -> Iterator[Piece]:
    for paragraph in paragraphs_of(lines):
        text = text_of(paragraph, join_hyphens)
        if text.strip():
            yield Piece("paragraph", text)


def _key(text: str) -> str:
    """Letters and digits alone: blanks, dots and dashes differ between an outline and the page."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _find(keys: Sequence[str], position: int, title: str) -> tuple[int, int] | None:
    if not title:
        return None
    for start in range(position, len(keys)):
        joined = ""
        for stop in range(start, min(start + _MAX_LINES, len(keys))):
            joined += keys[stop]
            before = len(joined) - len(title)
            if joined.endswith(title) and before < len(keys[start]) and _NUMBER.fullmatch(joined[:before]):
                return start, stop + 1
            if len(joined) > len(title) + 16:
                break
    return None
