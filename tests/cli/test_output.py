"""What reaches the terminal cannot drive it, and keeps within its width."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qedge_dagster.cli.output import cells, fit, printable, table
from tests.cli.conftest import finish

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=[]), max_size=60)


@given(ANY_TEXT)
def test_printable_has_no_control_characters(text: str) -> None:
    """Whatever the text: no control, no line end, no direction change, nothing that UTF-8 cannot carry."""
    shown = printable(text)
    shown.encode("utf-8")
    for character in shown:
        assert unicodedata.category(character) not in ("Cc", "Zl", "Zp", "Cs")
        assert unicodedata.bidirectional(character) not in (
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ünïcode 文字 🚣‍♀️.md", "Ünïcode 文字 🚣‍♀️.md"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("two\nlines\tand\x9b31m", "two\\nlines\\tand\\x9b31m"),
        ("caf\udce9.txt", "caf\\udce9.txt"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
    ],
)
def test_printable_examples(text: str, shown: str) -> None:
    """Letters of any script stay, what drives a terminal is escaped."""
    assert printable(text) == shown


@given(ANY_TEXT, st.integers(1, 40), st.booleans())
def test_fit_keeps_within_the_width(text: str, width: int, keep_end: bool) -> None:
    """A fitted text takes at most the width; one that fits already is unchanged."""
    fitted = fit(text, width, keep_end=keep_end)
    assert cells(fitted) <= width
    if cells(text) <= width:
        assert fitted == text or len(text) > width
    else:
        assert "…" in fitted


def test_fit_counts_columns() -> None:
    """Wide characters take two columns, combining ones none."""
    assert fit("文字列検索", 5) == "文字…"
    assert fit("e\u0301e\u0301e\u0301", 3) == "e\u0301e\u0301e\u0301"
    assert fit("a/very/long/path.md", 8, keep_end=True) == "…path.md"


def test_table_aligns_by_columns() -> None:
    """Columns line up whatever the script."""
    assert table([("文", "a"), ("xyz", "b")]) == ["文   a", "xyz  b"]


def test_output_survives_a_poor_encoding(ingested: object) -> None:
    """A terminal that knows ASCII only gets escapes, not an error."""
    result = finish("status", "--db", ingested, env_changes={"PYTHONIOENCODING": "ascii"})
    assert (result.returncode, result.stderr) == (0, "")
    assert "\\u2026" in result.stdout


def test_json_is_ascii(ingested: object) -> None:
    """JSON is valid on any terminal."""
    result = finish("status", "--db", ingested, "--json")
    assert result.stdout.isascii()
    assert json.loads(result.stdout)["documents"] == 3
