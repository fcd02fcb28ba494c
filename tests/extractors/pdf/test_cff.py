"""The own encoding of compact fonts."""

from __future__ import annotations

import pytest

from qedge_dagster.extractors.pdf.cff import own_encoding
from tests.extractors.pdf.builder import build, extract, pages

# Three glyphs: the unknown one, `fi` of the standard names (109), and `ffi`, the first name of the font's own (391).
_FONT = bytes.fromhex(
    "01000401"  # header, four bytes long
    "0001010102 41"  # one font name: A
    "000101010D 1C002F0F 1C003410 1C002511"  # one dictionary: charset at 47, encoding at 52, glyphs at 37
    "0001010104 666669"  # one string: ffi
    "0000"  # no subroutines
    "00030101020304 0E0E0E"  # three empty glyphs
    "00 006D 0187"  # charset: their names
    "00 02 0203"  # encoding: codes 2 and 3
)


def test_names_of_the_format_and_of_the_font() -> None:
    """Codes lead to glyphs, glyphs to names, names to letters."""
    assert own_encoding(_FONT) == {2: "\ufb01", 3: "\ufb03"}


def test_ranges() -> None:
    """The denser forms of charset and encoding say the same."""
    charset, encoding = bytes.fromhex("01 006D 01"), bytes.fromhex("01 01 02 01")
    ranges = _FONT[:47] + charset + b"\0" + encoding
    assert own_encoding(ranges) == {2: "\ufb01", 3: "\ufb02"}


def test_standard_encoding() -> None:
    """A font that has none of its own gives nothing."""
    assert own_encoding(_FONT.replace(bytes.fromhex("1C003410"), bytes.fromhex("1C000010"))) == {}


def test_broken_fonts() -> None:
    """Cut off anywhere or with wrong offsets, a font is an error of a known kind or gives less."""
    for position in range(len(_FONT)):
        for broken in (_FONT[:position], _FONT[:position] + b"\xff" + _FONT[position + 1 :]):
            try:
                own_encoding(broken)
            except (ValueError, IndexError, KeyError):
                continue


@pytest.mark.parametrize("size", [len(_FONT), 40])
def test_in_a_document(size: int) -> None:
    """Ligatures of a font without encoding are letters; with a broken font they are unknown."""
    source = pages(["BT /F1 12 Tf 72 720 Td (e\003cient) Tj ET"])
    source = source.replace("/BaseFont /Helvetica", "/BaseFont /Other /FontDescriptor << /FontFile3 90 0 R >>")
    font = _FONT[:size].decode("latin-1")
    data = build(f"{source}\n90 0 obj\n<< /Subtype /Type1C >>\nstream\n{font}\nendstream\nendobj")
    assert extract(data).text.replace(" ", "") == ("efficient" if size == len(_FONT) else "e\ufffdcient")
