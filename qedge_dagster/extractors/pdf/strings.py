"""Strings outside the text: titles of the outline, entries of the information dictionary, values of forms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pdfminer.pdftypes import resolve1
from pdfminer.psparser import PSLiteral
from pdfminer.utils import PDFDocEncoding

from qedge_dagster.documents import normalize_text

__all__ = ["decode_string", "decode_text", "read_information"]

_MAX_CHARACTERS = 2000
_MAX_TEXT = 100_000
_BLANKS = re.compile(r"\s+")
# A language may be marked inside a string.
_ESCAPES = re.compile("\x1b[^\x1b]*\x1b")
_DATE = re.compile(
    r"D?:?(\d{4})(\d\d)?(\d\d)?(?:(\d\d)(\d\d)(\d\d)?)?(?:\s*(Z|[+-](?=\d)))?(?:(\d\d)'?(\d\d)?'?)?", re.ASCII
)
_KEYS = {
    "Title": "title",
    "Author": "author",
    "Subject": "subject",
    "Keywords": "keywords",
    "Creator": "creator",
    "Producer": "producer",
    "CreationDate": "created",
    "ModDate": "modified",
}


def decode_string(value: Any) -> str:
    """One line of text; empty if the value is none.

    UTF-16 and UTF-8 are known by their BOM. Some programs write UTF-8 without it, in place of the format's
    own encoding.
    """
    value = resolve1(value)
    if isinstance(value, PSLiteral):
        value = value.name
    if isinstance(value, bytes):
        value = _decoded(value[: 4 * _MAX_CHARACTERS])
    if not isinstance(value, str):
        return ""
    text = _ESCAPES.sub("", value)
    text = "".join(character if character.isprintable() else " " for character in text)
    return normalize_text(_BLANKS.sub(" ", text).strip()[:_MAX_CHARACTERS])


def decode_text(value: Any) -> str:
    """As it is, with its lines; empty if the value is no string."""
    value = resolve1(value)
    text = _decoded(value[: 2 * _MAX_TEXT]) if isinstance(value, bytes) else ""
    return _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")


def _decoded(data: bytes) -> str:
    for bom, encoding in ((b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"), (b"\xef\xbb\xbf", "utf-8")):
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(PDFDocEncoding[byte] for byte in data)


def read_information(dictionaries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Title, author and so on; the first dictionary that has an entry counts. Dates become ISO 8601 where they can."""
    found: dict[str, str] = {}
    for dictionary in dictionaries:
        for key, name in _KEYS.items():
            text = decode_string(dictionary.get(key)) if name not in found else ""
            if text:
                found[name] = _iso(text) if name in ("created", "modified") else text
    return found


def _iso(text: str) -> str:
    match = _DATE.fullmatch(text)
    if match is None:
        return text
    year, month, day, hour, minute, second, sign, zone_hour, zone_minute = match.groups()
    date = f"{year}-{month or '01'}-{day or '01'}"
    if hour is None:
        return date
    zone = "Z" if sign == "Z" else f"{sign}{zone_hour}:{zone_minute or '00'}" if sign else ""
    return f"{date}T{hour}:{minute}:{second or '00'}{zone}"
