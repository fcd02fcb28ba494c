"""Stretches of text on one line, and what order their characters have."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Literal

__all__ = ["Fragment", "Glyph", "clean", "fragment_of"]

#: A gap this wide is a space, in units of the font size.
_SPACE = 0.15
# Of letters set apart: how many gaps it takes, how wide they are at most (less than a blank: it may be a list), how
# much they differ, and how many of all gaps between letters are like that.
_MIN_APART = 4
_MAX_APART = 0.24
_APART_DIFFERENCE = 0.05
_APART_SHARE = 0.75

_BLANKS = re.compile(r"\s+")
# Forms of letters and signs that fonts have and texts do not: ligatures, Arabic letters by their place in the word,
# radicals that stand for ideographs.
_FORMS = {
    code: unicodedata.normalize("NFKC", chr(code))
    for first, last in ((0xFB00, 0xFDFF), (0xFE70, 0xFEFC), (0x2F00, 0x2FD5))
    for code in range(first, last + 1)
}
_BULLET = "\uf0b7"  # of the font Symbol
_FIRST_RTL = "\u0590"

_Side = Literal["L", "R", ""]


@dataclass(slots=True)
class Glyph:
    """A character or ligature on the page; `text` is None if nothing says which.

    Positions are along the baseline (`start`, `end`) and across it (`base`: larger is further up), in points, after a
    turn by `angle`, the direction of the text in degrees. `spacing` is the part of the gap after it that is set between
    all letters.
    """

    text: str | None
    start: float
    end: float
    base: float
    size: float
    angle: int
    spacing: float = 0.0


@dataclass(slots=True)
class Fragment:
    """Glyphs side by side. `rtl`: its direction is from right to left."""

    text: str
    start: float
    end: float
    base: float
    size: float
    angle: int
    rtl: bool = False


def clean(text: str) -> str:
    """No control characters, presentation forms or private codes; what cannot be read is U+FFFD."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace(_BULLET, "\u2022").translate(_FORMS)
    return "".join(
        character
        if character.isprintable() or character == "\u00ad" or unicodedata.category(character) == "Cf"
        else " "
        if character.isspace() or unicodedata.category(character) in ("Cc", "Zs", "Zl", "Zp")
        else "\ufffd"
        for character in text
    )


def fragment_of(glyphs: Sequence[Glyph]) -> Fragment | None:
    """None if there is nothing to see."""
    rtl = False
    if any(glyph.text and max(glyph.text) >= _FIRST_RTL and _side(glyph.text) == "R" for glyph in glyphs):
        text, rtl = _by_direction(glyphs)
    else:
        text = _spaced(glyphs)
    text = _BLANKS.sub(" ", text).strip()
    if not text:
        return None
    # Blanks at its ends are part of the gap to the next one.
    seen = [glyph for glyph in glyphs if not (glyph.text or "\ufffd").isspace()]
    start, end = min(glyph.start for glyph in seen), max(glyph.end for glyph in seen)
    # The first glyph may be a mark or a note above the line; the largest is not.
    largest = max(seen, key=lambda glyph: glyph.size)
    return Fragment(text, start, end, largest.base, largest.size, largest.angle, rtl)


def _spaced(glyphs: Sequence[Glyph]) -> str:
    text, spaces = _joined(glyphs, 0.0)
    if spaces >= _MIN_APART and 2 * spaces >= len(glyphs):
        apart = _letters_apart(glyphs)
        if apart:
            text, _ = _joined(glyphs, apart)
    return text


def _joined(glyphs: Iterable[Glyph], usual: float) -> tuple[str, int]:
    """With a space for each gap that is wider than the usual one, and how many those are."""
    parts: list[str] = []
    spaces = 0
    last: Glyph | None = None
    for glyph in glyphs:
        if last is not None:
            space = usual + _SPACE * (last.size if last.size > glyph.size else glyph.size)
            # One of the two gaps is negative.
            if glyph.start - last.end - last.spacing > space or last.start - glyph.end - glyph.spacing > space:
                parts.append(" ")
                spaces += 1
        parts.append("\ufffd" if glyph.text is None else glyph.text)
        last = glyph
    return "".join(parts), spaces


def _letters_apart(glyphs: Sequence[Glyph]) -> float:
    """The gap between letters if it is nearly the same for most: they are one word, or several with wider gaps between
    them. Otherwise 0. Digits are no letters here: they may be the columns of a table."""
    gaps = [
        max(glyph.start - last.end - last.spacing, last.start - glyph.end - glyph.spacing)
        for last, glyph in pairwise(glyphs)
        if (last.text or "").isalpha() and (glyph.text or "").isalpha()
    ]
    if len(gaps) < _MIN_APART:
        return 0.0
    usual, size = median(gaps), max(glyph.size for glyph in glyphs)
    like = sum(abs(gap - usual) <= _APART_DIFFERENCE * size for gap in gaps)
    return usual if usual <= _MAX_APART * size and like >= _APART_SHARE * len(gaps) else 0.0


def _by_direction(glyphs: Sequence[Glyph]) -> tuple[str, bool]:
    """The text as it is read, whatever order it is drawn in, and whether its main direction is from right to left.

    A simple form of the bidirectional algorithm: runs of the other direction are turned, with the neutral characters
    inside them.
    """
    clusters: list[list[Glyph]] = []
    for glyph in glyphs:
        if clusters and glyph.text and unicodedata.combining(glyph.text[0]):
            clusters[-1].append(glyph)
        else:
            clusters.append([glyph])
    clusters.sort(key=lambda cluster: cluster[0].start + cluster[0].end)
    sides = [_side(cluster[0].text or "") for cluster in clusters]
    rtl = sides.count("R") >= sides.count("L")
    if rtl:
        clusters.reverse()
        sides.reverse()
    turned: _Side = "L" if rtl else "R"
    ordered: list[Glyph] = []
    position = 0
    while position < len(clusters):
        stop = position + 1
        if sides[position] == turned:
            for further in range(stop, len(clusters)):
                if sides[further] == turned:
                    stop = further + 1
                elif sides[further]:
                    break
        run = clusters[position:stop]
        ordered += [glyph for cluster in (reversed(run) if stop - position > 1 else run) for glyph in cluster]
        position = stop
    return _spaced(ordered), rtl


def _side(text: str) -> _Side:
    for character in text:
        match unicodedata.bidirectional(character):
            case "R" | "AL":
                return "R"
            case "L" | "EN" | "AN":
                return "L"
            case _:
                continue
    return ""
