"""Fragments → lines → paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from qedge_dagster.extractors.pdf.fragments import Fragment

__all__ = ["lines_of", "paragraphs_of", "text_of"]

# In units of the font size.
_SAME_LINE = 0.3
_SPACE = 0.15
_MAX_LEADING = 1.7
_MAX_SIZE_RATIO = 1.25
_MIN_INDENT = 0.9
_MAX_INDENT = 6.0

_SOFT_HYPHEN = "\u00ad"
_SENTENCE_END = re.compile(r"[.!?:\u3002\uff01\uff1f][\"'\xbb\u201d\u2019)\]]*$")
# The word before the break, without the hyphen.
_BROKEN = re.compile(r"([^\W_]+(?:[-'\u2019][^\W_]+)*)[-\u2010]$")


def lines_of(fragments: Iterable[Fragment]) -> list[Fragment]:
    """Join what follows on the same line: words set apart, the cells of a row."""
    lines: list[Fragment] = []
    for fragment in fragments:
        last = lines[-1] if lines else None
        if last is None or not _continues(last, fragment):
            lines.append(fragment)
            continue
        gap = max(fragment.start - last.end, last.start - fragment.end)
        space = " " if gap > _SPACE * max(last.size, fragment.size) else ""
        larger = max(last, fragment, key=lambda part: part.size)
        lines[-1] = Fragment(
            last.text + space + fragment.text,
            min(last.start, fragment.start),
            max(last.end, fragment.end),
            larger.base,
            larger.size,
            last.angle,
            last.rtl,
        )
    return lines


def _continues(line: Fragment, fragment: Fragment) -> bool:
    size = max(line.size, fragment.size)
    if line.angle != fragment.angle or abs(line.base - fragment.base) > _SAME_LINE * size:
        return False
    ahead = line.start - fragment.end if line.rtl else fragment.start - line.end
    return ahead >= -_SAME_LINE * size


def paragraphs_of(lines: Sequence[Fragment]) -> Iterator[Sequence[Fragment]]:
    """Lines of like size that follow each other closely, downwards."""
    start = 0
    for position in range(1, len(lines) + 1):
        if position == len(lines) or _parted(lines[position - 1], lines[position]):
            yield lines[start:position]
            start = position


def _parted(last: Fragment, line: Fragment) -> bool:
    smaller, larger = sorted((last.size, line.size))
    step = last.base - line.base
    if last.angle != line.angle or larger > _MAX_SIZE_RATIO * smaller or not 0 < step <= _MAX_LEADING * larger:
        return True
    if line.start > last.end or line.end < last.start:
        return True
    indent = last.end - line.end if line.rtl else line.start - last.start
    return _MIN_INDENT * larger <= indent <= _MAX_INDENT * larger and _SENTENCE_END.search(last.text) is not None


def text_of(lines: Iterable[Fragment], join_hyphens: bool) -> str:
    """The lines, one below the other; with `join_hyphens` words broken at the end of a line are whole again.

    A hyphen at the end of a line goes where the next line begins with a small letter. It stays, without the line break,
    where it seems to be the word's own: after a single letter (e-mail), a digit (12-fold), or a part that has a hyphen
    already (state-of-the-art). Before a capital or a digit nothing is joined. A soft hyphen always goes.
    """
    parts: list[str] = []
    for line in lines:
        if not parts:
            parts.append(line.text)
        elif not join_hyphens:
            parts.append("\n" + line.text)
        else:
            parts[-1], joint = _before(parts[-1], line.text)
            parts.append(joint + line.text)
    text = "".join(parts)
    return text.replace(_SOFT_HYPHEN, "") if join_hyphens else text


def _before(text: str, line: str) -> tuple[str, str]:
    """`text` as it stands before `line`, and what is between them."""
    if text.endswith(_SOFT_HYPHEN):
        return text, ""
    # The pattern needs the last word alone.
    broken = _BROKEN.search(text, max(0, len(text) - 64)) if line[:1].islower() else None
    if broken is None:
        return text, "\n"
    word = broken[1]
    its_own = len(word) == 1 or not word.isalpha()
    return text if its_own else text[:-1], ""
