"""Trimming a stretch of text to what can be seen."""

from __future__ import annotations

__all__ = ["visible_span"]

_WHITE_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))
#: Zero-width space and joiner, and the BOMs of files that were concatenated.
_INVISIBLE = "\u200b\u2060\ufeff"


def visible_span(text: str, start: int, end: int) -> tuple[int, int] | None:
    """`[start, end)` without white space at its ends; None if nothing in it can be seen."""
    piece = text[start:end]
    if not piece.strip(_WHITE_SPACE + _INVISIBLE):
        return None
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
