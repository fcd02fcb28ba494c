"""Recognising legacy encodings, by languages, encodings and lengths."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from qedge_dagster.extractors.decoding import decode
from tests.extractors.support import item

_LANGUAGES = Path(__file__).parent.parent / "fixtures" / "languages"
_ENCODINGS = {
    "ar": ["cp1256", "iso8859_6"],
    "bg": ["cp1251"],
    "cs": ["cp1250", "iso8859_2"],
    "da": ["cp1252"],
    "de": ["cp1252", "mac_roman", "cp850"],
    "el": ["cp1253", "iso8859_7"],
    "es": ["cp1252"],
    "fr": ["cp1252"],
    "he": ["cp1255"],
    "hu": ["cp1250", "iso8859_2"],
    "it": ["cp1252"],
    "ja": ["cp932", "euc_jp", "iso2022_jp"],
    "ko": ["euc_kr"],
    "lt": ["cp1257"],
    "pl": ["cp1250", "iso8859_2"],
    "pt": ["cp1252"],
    "ro": ["cp1250"],
    "ru": ["cp1251", "koi8_r", "cp866", "iso8859_5", "mac_cyrillic"],
    "sv": ["cp1252"],
    "th": ["cp874"],
    "tr": ["cp1254"],
    "uk": ["cp1251", "koi8_u"],
    "zh_hans": ["gb18030"],
    "zh_hant": ["big5"],
}
_CEDILLAS = str.maketrans("șțȘȚ", "şţŞŢ")  # cp1250 has Romanian letters in their older form


def _lengths(language: str) -> dict[str, str]:
    text = (_LANGUAGES / f"{language}.txt").read_text("utf-8").translate(_CEDILLAS)
    first, second, _ = text.split("\n")
    return {"sentence": first, "paragraph": second, "page": text * 6}


_CASES = [
    (language, encoding, length)
    for language, encodings in _ENCODINGS.items()
    for encoding in encodings
    for length in ("sentence", "paragraph", "page")
]


def test_every_language_is_tried() -> None:
    """No text lies beside the table."""
    assert sorted(_ENCODINGS) == sorted(path.stem for path in _LANGUAGES.iterdir())


@pytest.mark.parametrize(("language", "encoding", "length"), _CASES)
def test_recognised(language: str, encoding: str, length: str) -> None:
    """The text comes back without one wrong character, whatever the encoding is called."""
    text = _lengths(language)[length]
    content = text.encode(encoding, "ignore")
    decoded = decode(item(content).open())
    assert decoded.text == content.decode(encoding)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("café", "cp1252"),
        ("naïve résumé", "cp1252"),
        ("“Quoted” – and that’s all…", "cp1252"),  # noqa: RUF001
        ("Price: £5, 20 °C, © 2024", "cp1252"),
        ("Привет", "cp1251"),
        ("Привет", "koi8_r"),
        ("日本語", "cp932"),
        ("你好，世界", "gb18030"),  # noqa: RUF001
        ("안녕하세요", "euc_kr"),
    ],
)
def test_few_words(text: str, encoding: str) -> None:
    """With a handful of letters to go by, the common encodings are right."""
    assert decode(item(text.encode(encoding)).open()).text == text


def test_commonest_of_equals() -> None:
    """Where several encodings give the same text the commonest is named."""
    assert decode(item("Größe und Maß".encode("cp1250")).open()).encoding == "cp1252"


def test_sparse_letters_in_a_long_text() -> None:
    """The sample is taken where the letters are, not at the top."""
    text = "plain words " * 20_000 + "żółć i łódź w źdźble, gęś idzie ścieżką " + "plain words " * 20_000
    decoded = decode(item(text.encode("cp1250")).open())
    assert decoded.text == text


def test_long_line_without_white_space() -> None:
    """A sample cut from the middle of unbroken double-byte text does not begin inside a character."""
    text = "x" * 5001 + "".join(map(chr, range(0x4E00, 0x4E00 + 3000, 3))) + "的一是不了在人有我他这中大来上" * 200
    content = text.encode("gb18030")
    assert decode(item(content).open()).text == text


def test_other_encodings_through_charset_normalizer() -> None:
    """One that is not in our own table is still recognised."""
    text = (_LANGUAGES / "ru.txt").read_text("utf-8")
    decoded = decode(item(text.encode("cp855")).open())
    assert (decoded.text, decoded.warnings) == (text, ())


def test_latin_1_as_the_last_resort() -> None:
    """Bytes that make sense in no encoding are kept one by one, with a warning."""
    content = bytes(random.Random(3).choices(range(0xA0, 0x100), k=400))
    decoded = decode(item(content).open())
    assert decoded.encoding == "latin-1"
    assert decoded.text == content.decode("latin-1")
    assert len(decoded.warnings) == 1
