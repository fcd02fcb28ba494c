"""Glob patterns."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qedge_dagster.errors import QedgeError
from qedge_dagster.sources.patterns import compile_patterns


@pytest.mark.parametrize(
    ("pattern", "taken", "left"),
    [
        ("*", ["a", "a/b.md", ".x"], []),
        ("*.md", ["a.md", "x/y/a.md", ".md"], ["a.MD", "a.md/b", "a.mdx"]),
        ("docs/*.md", ["docs/a.md"], ["a.md", "docs/x/a.md", "x/docs/a.md"]),
        ("./docs/*.md", ["docs/a.md"], ["x/docs/a.md"]),
        ("/docs/*.md", ["docs/a.md"], ["x/docs/a.md"]),
        ("**/docs/*.md", ["docs/a.md", "x/docs/a.md", "x/y/docs/a.md"], ["docs/x/a.md", "xdocs/a.md"]),
        ("docs/**", ["docs/a", "docs/x/y/z.md"], ["docs", "x/docs/a"]),
        ("docs/**/a.md", ["docs/a.md", "docs/x/y/a.md"], ["docs/xa.md"]),
        ("drafts/", ["drafts", "x/drafts"], ["drafts/a"]),
        ("a?c", ["abc", "x/a.c"], ["ac", "a/c"]),
        ("[a-c]1", ["a1", "c1"], ["d1", "-1"]),
        ("[!a-c]1", ["d1"], ["a1", "/1"]),
        ("[]]x", ["]x"], ["x"]),
        ("a[b", ["a[b"], ["ab"]),
        ("a.b+(c)", ["a.b+(c)"], ["axb+(c)", "a.bb(c)"]),
        ("re\u0301sume\u0301*", ["r\u00e9sum\u00e9.md"], ["resume.md"]),
    ],
)
def test_pattern(pattern: str, taken: list[str], left: list[str]) -> None:
    """What one pattern takes and what it leaves."""
    matches = compile_patterns(pattern)
    assert [path for path in taken + left if matches(path)] == taken


def test_several_patterns() -> None:
    """Any of them is enough; a list of none takes nothing."""
    matches = compile_patterns(["*.md", "*.txt"])
    assert [bool(matches(path)) for path in ("a.md", "x/b.txt", "c.pdf")] == [True, True, False]
    assert not compile_patterns([])("a.md")


def test_empty_pattern_is_refused() -> None:
    """An empty pattern would take nothing and say nothing."""
    with pytest.raises(QedgeError) as caught:
        compile_patterns(["*.md", ""])
    assert caught.value.code == 6005


@given(st.text("ab.*?[]!-", min_size=1, max_size=8), st.text("ab.[]!-", min_size=1, max_size=6))
def test_names_match_as_in_the_standard_library(pattern: str, name: str) -> None:
    """For names without folders the standard library is the reference."""
    if "**" not in pattern:
        assert bool(compile_patterns(pattern)(name)) == fnmatch.fnmatchcase(name, pattern)
