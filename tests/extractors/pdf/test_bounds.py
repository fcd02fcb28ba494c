"""Fonts that claim more characters than there are."""

from __future__ import annotations

import pytest

from qedge_dagster.extractors.pdf.bounds import bounded_widths
from tests.extractors.pdf.builder import build, extract, pages


def test_widths() -> None:
    """Ranges are cut to the codes that there are, and all of them together to a bound; lists stay."""
    assert bounded_widths([1, [500, 600], 7, 9, 400], 3) == [1, [500, 600], 7, 9, 400]
    assert bounded_widths([0, 2_000_000_000, 500], 3) == [0, 65535, 500]
    assert bounded_widths([-9, 3, 1, 5.5, 7, 1], 3) == [0, 3, 1]
    assert bounded_widths([3, 2_000_000_000, -900, 440, 880], 5) == [3, 65535, -900, 440, 880]
    many = bounded_widths([0, 65535, 500] * 1000, 3)
    assert sum(last - first for first, last in zip(many[::3], many[1::3], strict=True)) <= 65536


@pytest.mark.parametrize(
    "letters",
    [
        "1 beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange",
        "1 beginbfrange <00> <FFFFFFFFFFFF> <0041> endbfrange 1 beginbfrange <00> <30> <0041> endbfrange",
        "1 begincidrange <00000000> <FFFFFFFF> 0 endcidrange",
        "1 beginbfchar <00> <" + "0042" * 100_000 + "> endbfchar",
    ],
)
def test_letters(letters: str) -> None:
    """A font whose letters are thousands of millions costs no other text."""
    content = "BT /F2 12 Tf 72 720 Td <00> Tj /F1 12 Tf 0 -40 Td (Text) Tj ET"
    source = pages([content]).replace("/F1 3 0 R", "/F1 3 0 R /F2 80 0 R")
    font = "80 0 obj\n<< /Type /Font /Subtype /TrueType /BaseFont /X /ToUnicode 81 0 R >>\nendobj"
    text = extract(build(f"{source}\n{font}\n81 0 obj\n<< >>\nstream\n{letters}\nendstream\nendobj")).text
    assert text.endswith("Text")
    assert len(text) < 1000


def test_letters_within_the_bounds() -> None:
    """Ranges, lists and single letters are as the font says."""
    letters = (
        "1 beginbfrange <01> <02> <0061> <03> <04> [<00660066> <0069>] endbfrange 1 beginbfchar <05> <006A> endbfchar"
    )
    source = pages(["BT /F1 12 Tf 72 720 Td <0102030405> Tj ET"]).replace("/Helvetica", "/Helvetica /ToUnicode 81 0 R")
    assert extract(build(f"{source}\n81 0 obj\n<< >>\nstream\n{letters}\nendstream\nendobj")).text == "abffij"
