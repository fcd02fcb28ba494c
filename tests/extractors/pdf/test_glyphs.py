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
