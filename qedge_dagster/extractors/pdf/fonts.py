"""Fonts of the last pages, and what the library makes of them mended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pdfminer.cmapdb import FileUnicodeMap
from pdfminer.encodingdb import name2unicode
from pdfminer.pdffont import PDFCIDFont, PDFFont, PDFSimpleFont
from pdfminer.pdfinterp import PDFResourceManager
from pdfminer.pdftypes import PDFStream, dict_value, list_value, resolve1
from pdfminer.psparser import LIT, PSLiteral

from qedge_dagster.extractors.pdf.bounds import bounded_widths, read_letters
from qedge_dagster.extractors.pdf.cff import own_encoding
from qedge_dagster.extractors.pdf.tolerance import tolerated

__all__ = ["Fonts"]

_MAX_FONTS = 64

#: A glyph named by a number: TeX's bitmap fonts call the letter at place 233 `a233`.
_NUMBERED = re.compile(r"[A-Za-z]{1,2}(\d{2,3})")


class Fonts(PDFResourceManager):
    """Those of the last pages: a document may have some for each page."""

    def get_font(self, objid: object, spec: Mapping[str, object]) -> PDFFont:
        if len(self._cached_fonts) >= _MAX_FONTS and objid not in self._cached_fonts:
            self._cached_fonts.clear()
        chinese = _chinese(spec)
        if chinese is not None:
            return super().get_font(objid, chinese)
        # A font of type 0 comes back for its descendant.
        if objid in self._cached_fonts or spec.get("Subtype") is LIT("Type0"):
            return super().get_font(objid, spec)
        font = super().get_font(objid, _bounded(spec))
        if isinstance(font, (PDFSimpleFont, PDFCIDFont)) and isinstance(font.unicode_map, FileUnicodeMap):
            letters = resolve1(spec.get("ToUnicode"))
            if isinstance(letters, PDFStream):
                read_letters(letters.get_data(), font.unicode_map)
        if isinstance(font, PDFSimpleFont) and font.unicode_map is None:
            _mend(font, spec)
        return font


def _bounded(spec: Mapping[str, object]) -> Mapping[str, object]:
    """Widths within bounds; the letters, which the library reads without any, are left out."""
    bounded = dict(spec)
    for key, size in (("W", 3), ("W2", 5)):
        if key in spec:
            bounded[key] = bounded_widths(list_value(spec[key]), size)
    if isinstance(resolve1(spec.get("ToUnicode")), PDFStream):
        bounded["ToUnicode"] = PDFStream({}, b"")
    return bounded


def _mend(font: PDFSimpleFont, spec: Mapping[str, object]) -> None:
    """The library keeps the letters of the standard encoding for glyphs whose names it does not know and for compact
    fonts, and has a blank where the encoding of Windows has its second hyphen."""
    encoding = resolve1(spec.get("Encoding"))
    names = dict(_differences(dict_value(encoding))) if isinstance(encoding, dict) else {}
    unknown = {code: name for code, name in names.items() if not _is_known(name)}
    letters = dict(font.cid2unicode)  # the original is shared by all fonts
    if "Encoding" not in spec:
        with tolerated():
            file = resolve1(dict_value(spec.get("FontDescriptor")).get("FontFile3"))
            letters |= own_encoding(file.get_data()) if isinstance(file, PDFStream) else {}
    if letters.get(0xAD) == " ":
        letters[0xAD] = "-"
    for code, name in unknown.items():
        letters.pop(code, None)
        number = _NUMBERED.fullmatch(name)
        character = chr(int(number[1])) if number else ""
        # These are the same in all encodings that such fonts have, by and large.
        if "!" <= character <= "~" or "\xc0" <= character <= "\xff":
            letters[code] = character
    font.cid2unicode = letters


def _differences(encoding: Mapping[Any, Any]) -> Iterator[tuple[int, str]]:
    code = 0
    for value in list_value(encoding.get("Differences")):
        if isinstance(value, int):
            code = value
        elif isinstance(value, PSLiteral):
            yield code, value.name if isinstance(value.name, str) else ""
            code += 1


def _is_known(name: str) -> bool:
    try:
        return bool(name2unicode(name))
    except (KeyError, ValueError):
        return False


def _chinese(spec: Mapping[str, object]) -> Mapping[str, object] | None:
    """What a font should say of itself that has a Chinese name in GBK, no font file, and pairs of bytes for letters,
    though it claims the encoding of Windows in Western Europe: as some programs wrote them around 2000."""
    name = resolve1(spec.get("BaseFont"))
    if spec.get("Subtype") is not LIT("TrueType") or not isinstance(name, PSLiteral) or "ToUnicode" in spec:
        return None
    raw = name.name
    if not isinstance(raw, bytes) or any(key.startswith("FontFile") for key in dict_value(spec.get("FontDescriptor"))):
        return None
    try:
        letters = raw.split(b"_")[0].decode("gbk")
    except UnicodeDecodeError:
        return None
    if not letters or not all("\u4e00" <= letter <= "\u9fff" for letter in letters):
        return None
    descendant = {
        "Type": LIT("Font"),
        "Subtype": LIT("CIDFontType2"),
        "BaseFont": LIT("GBK"),
        "CIDSystemInfo": {"Registry": b"Adobe", "Ordering": b"GB1", "Supplement": 2},
        "FontDescriptor": spec.get("FontDescriptor"),
        "DW": 1000,
        # Letters of half the width: the ASCII ones.
        "W": [1, 95, 500, 814, 939, 500],
    }
    return {
        "Type": LIT("Font"),
        "Subtype": LIT("Type0"),
        "BaseFont": LIT("GBK"),
        "Encoding": LIT("GBK-EUC-H"),
        "DescendantFonts": [descendant],
    }
