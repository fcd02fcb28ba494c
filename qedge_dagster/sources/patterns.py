"""Glob patterns over forward-slash relative paths, with the same rules on every machine."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable
from unicodedata import normalize

from qedge_dagster.errors import QedgeError

__all__ = ["compile_patterns"]

_PIECE = re.compile(r"\*\*/|\*\*|\*|\?|\[(?:![^/]|[^!/])[^\]/]*\]|.", re.DOTALL)


def compile_patterns(patterns: str | Iterable[str]) -> Callable[[str], object]:
    """A function of a relative path that is true if any of the patterns takes it.

    A pattern without `/` is for the name alone, at any depth; one with `/` is for the whole path from the root, where
    `*` and `?` stop at `/`, and `**/` stands for any number of folders. Upper and lower case differ everywhere.
    Raises `QedgeError` 6005 for an empty pattern.
    """
    patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    if not all(patterns):
        raise QedgeError(6005, "a file name pattern must not be empty")
    if "*" in patterns:
        return bool  # saves an expression per file: no path is empty
    if not patterns:
        return _is_never
    return re.compile("|".join(map(_translate, patterns)), re.DOTALL).fullmatch


def _is_never(_path: str) -> bool:
    return False


def _translate(pattern: str) -> str:
    pattern = normalize("NFC", pattern).removeprefix("./").rstrip("/")
    anywhere = "" if "/" in pattern else "(?:.*/)?"
    return anywhere + "".join(map(_expression, _PIECE.findall(pattern.removeprefix("/"))))


def _expression(piece: str) -> str:
    if piece == "**/":
        return "(?:[^/]+/)*"
    if piece == "**":
        return ".*"
    if piece == "*":
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    if len(piece) > 1:
        return "(?!/)" + fnmatch.translate(piece).removesuffix(r"\Z").removesuffix(r"\z")
    return re.escape(piece)
