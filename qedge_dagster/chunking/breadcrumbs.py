"""Heading paths: made safe to join, and cut to their token budget."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from qedge_dagster.chunking.tokenizer import Tokenizer

__all__ = ["SEPARATOR", "fit_breadcrumb", "join_path", "sanitize_heading"]

SEPARATOR = " \u203a "
_LONE_SEPARATOR = re.compile(r"(?<!\S)\u203a(?!\S)")
_WORD_START = re.compile(r"(?<!\S)\S")


def sanitize_heading(title: str) -> str:
    """One line without control characters, in which the separator cannot be found: where that
    sign stands alone it becomes `>`."""
    visible = "".join(" " if unicodedata.category(c) == "Cc" else c for c in title)
    return _LONE_SEPARATOR.sub(">", " ".join(visible.split()))


def join_path(path: Sequence[str]) -> str:
    """`split(SEPARATOR)` gives the path back if its headings are sanitised and not empty."""
    return SEPARATOR.join(path)


def fit_breadcrumb(path: Sequence[str], budget: int, tokenizer: Tokenizer) -> str:
    """The joined path, cut from the left until it takes at most `budget` tokens with the blank line after it.

    Whole headings go first; of a last heading that is too long by itself its last words remain.
    """
    if budget <= 0:
        return ""
    for first in range(len(path)):
        breadcrumb = join_path(path[first:])
        if _fits(breadcrumb, budget, tokenizer):
            return breadcrumb
    return _last_words(path[-1], budget, tokenizer) if path else ""


def _last_words(heading: str, budget: int, tokenizer: Tokenizer) -> str:
    starts = tokenizer.offsets(heading)[:, 0]
    earliest = int(starts[max(0, len(starts) - budget)]) if len(starts) else 0
    for match in _WORD_START.finditer(heading, earliest):
        if _fits(heading[match.start() :], budget, tokenizer):
            return heading[match.start() :]
    return ""


def _fits(breadcrumb: str, budget: int, tokenizer: Tokenizer) -> bool:
    return tokenizer.count(f"{breadcrumb}\n\n") <= budget
