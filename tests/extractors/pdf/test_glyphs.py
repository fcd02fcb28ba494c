"""Where glyphs stand, and what that says about the text: drawn twice, set apart, replaced."""

from __future__ import annotations

import pytest

from tests.extractors.pdf.builder import build, extract, pages


def _text(content: str) -> str:
    return extract(build(pages([content]))).text


@pytest.mark.parametrize(
    "content",
    [
        "BT /F1 12 Tf 72 700 Td (will llama....) Tj 0.3 0 Td (will llama....) Tj ET",
        "BT /F1 24 Tf 72 700 Td (will llama....) Tj -1 1 Td (will llama....) Tj ET",
        "BT /F1 12 Tf 72 700 Td 0 Tr (will llama....) Tj ET BT /F1 12 Tf 72 700 Td 1 Tr (will llama....) Tj ET",
        "BT /F1 12 Tf 0 1 -1 0 72 300 Tm (will llama....) Tj 0 1 -1 0 72.3 300 Tm (will llama....) Tj ET",
    ],
    ids=["bold by a shift", "shadow", "filled, then outlined", "upwards"],
)
def test_text_drawn_twice(content: str) -> None:
    """Text that is drawn again at nearly the same place is there once, with its double letters and its dots."""
    assert _text(content) == "will llama...."


def test_glyphs_drawn_twice() -> None:
    """Each glyph twice before the next one is one glyph as well."""
    drawn = "".join(
        f"1 0 0 1 {72 + 8 * index + shift} 700 Tm ({letter}) Tj "
        for index, letter in enumerate("BOLLD")
        for shift in (0, 0.4)
    )
    assert _text(f"BT /F1 12 Tf {drawn} ET") == "BOLLD"


def test_the_same_text_elsewhere() -> None:
    """The same words a line below, in another size at the same place, or on another page are drawn once each."""
    content = "BT /F1 12 Tf 72 700 Td (again) Tj 0 -14 Td (again) Tj /F1 24 Tf 0 0 Td (again) Tj ET"
    assert _text(content).split() == ["again"] * 3
    assert extract(build(pages([content, content]))).text.split() == ["again"] * 6


@pytest.mark.parametrize("spacing", [1.8, 2, 3, 6, 18])
def test_character_spacing(spacing: float) -> None:
    """Letters set apart by character spacing are words, with the gaps between words as wide as they are."""
    assert _text(f"BT /F1 12 Tf {spacing} Tc 72 700 Td (ANNUAL 2024) Tj ET") == "ANNUAL 2024"
    assert _text(f"BT /F1 12 Tf {spacing} Tc 72 700 Td [(ANNUAL)-300(REPORT)] TJ ET") == "ANNUAL REPORT"


def test_letters_set_apart_one_by_one() -> None:
    """Letters of which each has its own place, with the same gap between most, are words as well."""
    kerned = "".join(f"({letter}){-500 if letter == 'L' else -200}" for letter in "ANNUALREPORT")
    assert _text(f"BT /F1 12 Tf 72 700 Td [{kerned}] TJ ET") == "ANNUAL REPORT"
    letters = (("A", 8.0), ("N", 8.66), ("N", 8.66), ("U", 8.66), ("A", 8.0), ("L", 6.67))
    placed = " ".join(f"({letter}) Tj {width + 2.5} 0 Td" for letter, width in letters)
    assert _text(f"BT /F1 12 Tf 72 700 Td {placed} ET") == "ANNUAL"


def test_cells_are_no_letters_set_apart() -> None:
    """Digits with the same gap between them, and letters a blank apart, as in lists, stay apart."""
    assert _text("BT /F1 12 Tf 72 700 Td [(0)-400(1)-400(1)-400(0)-400(1)-400(0)] TJ ET") == "0 1 1 0 1 0"
    assert _text("BT /F1 12 Tf 72 700 Td [(a)-250(b)-250(c)-250(d)-250(e)-250(f)] TJ ET") == "a b c d e f"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("/Span << /ActualText (real) >> BDC (f) Tj 6 0 Td (ake) Tj EMC ( text) Tj", "real text"),
        ("/Span << /ActualText <FEFF00E90061> >> BDC (e) Tj (a) Tj EMC (sy) Tj", "\xe9asy"),
        ("/Span << /ActualText () >> BDC (hidden) Tj EMC", ""),
        ("/Span /Named BDC (fake) Tj EMC", "by name"),
        ("/Span << /ActualText (outer) >> BDC /Span << /ActualText (inner) >> BDC (x) Tj EMC (y) Tj EMC", "outer"),
        ("/P << /MCID 0 >> BDC (kept) Tj EMC EMC EMC ( too) Tj", "kept too"),
    ],
)
def test_text_in_place_of_glyphs(content: str, text: str) -> None:
    """Marked content with a text of its own is that text, once, whatever its glyphs are."""
    source = pages([f"BT /F1 12 Tf 72 700 Td {content} ET"], "/Properties << /Named << /ActualText (by name) >> >>")
    assert extract(build(source)).text == text
