"""Heading paths that can be taken apart again, and keep their token budget."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qedge_dagster.chunking import Tokenizer
from qedge_dagster.chunking.breadcrumbs import SEPARATOR, fit_breadcrumb, join_path, sanitize_heading
from tests.chunking.support import TOKENIZERS, wordpiece

_TITLES = st.text("ab \u203a\u00a0\n\t\x00\x1f\u2028>\u00e9", max_size=12)


@given(st.lists(_TITLES, min_size=1, max_size=5))
def test_a_joined_path_splits_into_the_same_headings(titles: list[str]) -> None:
    """Whatever the titles hold, the separator is found only where it joined."""
    path = [title for title in map(sanitize_heading, titles) if title]
    assert join_path(path).split(SEPARATOR) == (path or [""])
    assert all(sanitize_heading(title) == title for title in path)


def test_a_quote_keeps_its_marks() -> None:
    """Only a sign that could be taken for the separator is replaced."""
    assert sanitize_heading("dit \u2039mot\u203a \u203a  suite\t\u203a") == "dit \u2039mot\u203a > suite >"


@pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)
@given(
    path=st.lists(st.text("roof water\u6c34", min_size=1, max_size=60).map(sanitize_heading).filter(bool), max_size=5)
)
def test_a_breadcrumb_keeps_its_budget(tokenizer: Callable[[], Tokenizer], path: list[str]) -> None:
    """At most 12 tokens with the blank line after it, and the end of the path, never its beginning alone."""
    breadcrumb = fit_breadcrumb(path, 12, tokenizer())
    assert not breadcrumb or tokenizer().count(f"{breadcrumb}\n\n") <= 12
    assert join_path(path).endswith(breadcrumb)


def test_whole_headings_go_first_then_words_of_the_last() -> None:
    """A path is cut from the left: headings, then the first words of the last one."""
    assert fit_breadcrumb(["one two three", "four five", "six"], 5, wordpiece()) == "four five \u203a six"
    assert fit_breadcrumb(["one", "two three four five six"], 3, wordpiece()) == "four five six"
    assert fit_breadcrumb(["one"], 0, wordpiece()) == ""
