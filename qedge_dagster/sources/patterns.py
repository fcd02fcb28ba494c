"""Glob patterns over forward-slash relative paths, with the same rules on every machine."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import TypeVar
from unicodedata import normalize

from qedge_dagster.errors import QedgeError

__all__ = ["Selection", "compile_patterns"]

_Entry = TypeVar("_Entry")

_PIECE = re.compile(r"\*\*/|\*\*|\*|\?|\[(?:![^/]|[^!/])[^\]/]*\]|.", re.DOTALL)


class Selection:
    """Which entries of a tree are taken: the same for every source that has folders."""

    def __init__(
        self, pattern: str | Sequence[str], exclude: str | Sequence[str], *, recursive: bool, include_hidden: bool
    ) -> None:
        """Raises `QedgeError` 6005 for an empty pattern."""
        if not pattern:
            raise QedgeError(6005, "a source of files needs at least one pattern")
        self.recursive = recursive
        self._include_hidden = include_hidden
        self._selects = compile_patterns(pattern)
        self._excludes = compile_patterns(exclude)

    def shows(self, name: str) -> bool:
        """Whether an entry of this name is looked at."""
        return self._include_hidden or not (name[0] == "." or name.startswith("~$"))

    def select(self, prefix: str, names: Sequence[str], entries: Sequence[_Entry]) -> list[tuple[str, _Entry]]:
        """The entries of one folder by id, sorted; `names` are theirs, fit for an id. That of a folder ends in `/`, so
        that `a-b`, `a/x`, `a0` come in the order of the whole ids."""
        selected: list[tuple[str, _Entry]] = []
        for name, entry in zip(names, entries, strict=True):
            document_id = prefix + name
            if name[-1] == "/":
                wanted = not self._excludes(document_id[:-1])
            else:
                wanted = self._selects(document_id) and not self._excludes(document_id)
            if wanted:
                selected.append((document_id, entry))
        selected.sort(key=itemgetter(0))
        return selected


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
