"""Bytes of unknown encoding → text."""

from __future__ import annotations

import re
import unicodedata
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections import Counter
from dataclasses import dataclass
from typing import BinaryIO

from qedge_dagster.documents import normalize_text
from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.base import ExtractionContext
from qedge_dagster.extractors.legacy import guess_encoding
from qedge_dagster.sources.base import SourceItem

__all__ = ["DecodedText", "decode", "read_text"]

_READ_BYTES = 256 * 1024

# The longer first: the BOM of UTF-32 LE begins with that of UTF-16 LE.
_BOMS = (
    (BOM_UTF32_LE, "utf-32-le"),
    (BOM_UTF32_BE, "utf-32-be"),
    (BOM_UTF8, "utf-8"),
    (BOM_UTF16_LE, "utf-16-le"),
    (BOM_UTF16_BE, "utf-16-be"),
)
_SIGNATURES = {
    b"\x7fELF": "an ELF program",
    b"\x89PNG\r\n": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF87a": "a GIF image",
    b"GIF89a": "a GIF image",
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b\x08": "a gzip archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"\xd0\xcf\x11\xe0": "an OLE document",
    b"SQLite format 3\0": "an SQLite database",
    b"%PDF-": "a PDF document",
}
# What no text needs: all of C0 but backspace, tab, line and page breaks and escape; and DEL. NUL is counted apart.
_CONTROLS = bytes({*range(1, 32), 127} - {8, 9, 10, 11, 12, 13, 27})
_PRINTABLE = bytes({*range(32, 127), 9, 10, 13})
# Shares of the bytes above which content is no text. Random bytes hold 9.8 % of these controls, compressed files about
# as many; text holds none, or a burst of line noise. UTF-8 is proof enough of text to allow for more.
_MAX_NULS = 0.3
_MAX_CONTROLS = 0.3
_MAX_CONTROLS_LEGACY = 0.05
# Wide text is half zeros or high bytes; in other text nearly everything is printable ASCII or nothing is a zero.
_MAX_PRINTABLE_WIDE = 0.6
_MAX_ODD_WIDE = 0.02
_ODD_CATEGORIES = frozenset({"Cc", "Cn", "Co"})
_MIN_SCORE = 0.3
_FEW_FAULTS = 0.001

_HIGH = re.compile(rb"[\x80-\xff]")
_SPACE = re.compile(rb"\s")
_NULS = re.compile("\0+")
_FAULTS = re.compile("[\udc80-\udcff]+")  # bytes that are no UTF-8, as `surrogateescape` shows them


@dataclass(frozen=True, slots=True)
class DecodedText:
    """`encoding` is Python's name of it."""

    text: str
    encoding: str
    warnings: tuple[str, ...] = ()


def read_text(item: SourceItem, context: ExtractionContext, strict_utf8: bool) -> DecodedText:
    """The text of an item, normalised if the context says so. Raises as `decode` does."""
    with item.open() as stream:
        decoded = decode(stream, strict_utf8)
    if not context.normalize_text:
        return decoded
    return DecodedText(normalize_text(decoded.text), decoded.encoding, decoded.warnings)


def decode(stream: BinaryIO, strict_utf8: bool = False) -> DecodedText:
    """Decode by the first that fits: a BOM, UTF-16 or UTF-32 without BOM, UTF-8, UTF-8 with faults, the legacy encoding
    that makes most sense, Latin-1. The text has no BOM, no lone surrogate and no NUL: a run of NULs becomes a space.

    Raises `QedgeError` 6104 for content that is no text, 6106 with `strict_utf8` where neither BOM nor UTF-8 fits.
    """
    data, nuls, controls = _read(stream)
    for signature, what in _SIGNATURES.items():
        if data.startswith(signature):
            raise QedgeError(6104, f"the content is {what}, not text")
    decoded = _by_bom(data, strict_utf8)
    if decoded is None and nuls:
        decoded = _wide_without_bom(data, strict_utf8)
    if decoded is None:
        decoded = _by_content(data, nuls / max(1, len(data)), controls / max(1, len(data)), strict_utf8)
    text, warnings = decoded.text.removeprefix("\ufeff"), decoded.warnings
    if "\0" in text:
        warnings = (*warnings, f"{text.count(chr(0))} NUL characters were replaced by spaces")
        text = _NULS.sub(" ", text)
    return DecodedText(text, decoded.encoding, warnings)


def _read(stream: BinaryIO) -> tuple[bytearray, int, int]:
    """The bytes, and how many of them are NULs and other controls."""
    data, nuls, controls = bytearray(), 0, 0
    while part := stream.read(_READ_BYTES):
        data += part
        nuls += part.count(0)
        controls += len(part) - len(part.translate(None, _CONTROLS))
    return data, nuls, controls


def _by_bom(data: bytearray, strict: bool) -> DecodedText | None:
    for bom, encoding in _BOMS:
        if not data.startswith(bom):
            continue
        try:
            return DecodedText(str(data, encoding), encoding)
        except UnicodeDecodeError as error:
            if strict:
                raise QedgeError(6106, f"not {encoding.upper()} at byte {error.start}") from None
        # Such bytes may begin another encoding's text, or no text at all.
        if encoding.startswith("utf-16") and _odd_share(data, encoding) <= _MAX_ODD_WIDE:
            return _replacing(data, encoding)
    return None


def _wide_without_bom(data: bytearray, strict: bool) -> DecodedText | None:
    head = data[:65536]
    if len(head) - len(head.translate(None, _PRINTABLE)) > _MAX_PRINTABLE_WIDE * len(head):
        return None
    # Where the zeros are tells the byte order: in UTF-16 LE they are the second bytes of ASCII.
    zeros = [head[position::4].count(0) for position in range(4)]
    order = "le" if zeros[1] + zeros[3] > zeros[0] + zeros[2] else "be"
    for encoding in (f"utf-32-{order}", "utf-32-be", f"utf-16-{order}"):
        if _odd_share(data, encoding) <= _MAX_ODD_WIDE:
            if strict:
                raise QedgeError(6106, f"not UTF-8, by the look of it {encoding.upper()} without a BOM")
            return _replacing(data, encoding)
    return None


def _odd_share(data: bytearray, encoding: str) -> float:
    """How much of the beginning, so decoded, are characters that text does not have."""
    text = str(data[:65536], encoding, "replace").removesuffix("\ufffd") or "\0"
    counts = Counter(text)
    odd = (n for c, n in counts.items() if c not in "\t\n\r\f" and unicodedata.category(c) in _ODD_CATEGORIES)
    return (sum(odd) + counts["\ufffd"]) / len(text)


def _by_content(data: bytearray, nuls: float, controls: float, strict: bool) -> DecodedText:
    if nuls > _MAX_NULS:
        raise QedgeError(6104, f"{nuls:.0%} of the content are NULs: it is no text")
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError as error:
        if controls > _MAX_CONTROLS_LEGACY:
            raise QedgeError(6104, f"{controls:.0%} of the content are control characters: it is no text") from None
        if strict:
            raise QedgeError(6106, f"not UTF-8 at byte {error.start}") from None
        return _guessed(data)
    if controls > _MAX_CONTROLS:
        raise QedgeError(6104, f"{controls:.0%} of the content are control characters: it is no text")
    return _escaped_japanese(data) or DecodedText(text, "utf-8")


def _escaped_japanese(data: bytearray) -> DecodedText | None:
    """ISO-2022-JP, of Japanese mail: all bytes are ASCII, and escape sequences say what they mean."""
    if b"\x1b$" not in data[:65536]:
        return None
    try:
        return DecodedText(str(data, "iso2022_jp"), "iso2022_jp")
    except UnicodeDecodeError:
        return None


def _guessed(data: bytearray) -> DecodedText:
    try:
        text = str(data, "utf-8", "surrogatepass")
    except UnicodeDecodeError:
        pass
    else:  # CESU-8, from databases and Java: pairs of surrogates, each written as if it were a character
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return DecodedText(text, "utf-8", ("surrogates in UTF-8 were joined in pairs, single ones replaced",))

    sample = _sample(data, 65536)
    text = sample.decode("utf-8", "surrogateescape")
    faults = len(_FAULTS.findall(text))
    valid = sum(character > "\x7f" for character in _FAULTS.sub("", text))
    if valid >= 4 * faults:
        return _mended_utf8(data)
    encoding, score = guess_encoding(sample[:4096])
    if score >= _MIN_SCORE:
        return _replacing(data, encoding)
    if valid >= faults or faults < _FEW_FAULTS * len(data):
        return _mended_utf8(data)

    from charset_normalizer import from_bytes  # slow to import, and rarely needed

    match = from_bytes(sample[:4096]).best()
    if match is not None:
        return _replacing(data, match.encoding)
    return DecodedText(str(data, "latin-1"), "latin-1", ("no encoding fits the content: it was read as Latin-1",))


def _sample(data: bytearray, limit: int) -> bytes:
    """The bytes above ASCII with what is around them. A part begins after an ASCII character, so never inside a character
    of a multi-byte encoding."""
    sample, end = bytearray(), 0
    while len(sample) < limit and (high := _HIGH.search(data, end)):
        start = max(end, high.start() - 32)
        if start > end:
            sample += b" "
        space = _SPACE.search(data, high.start(), high.start() + 1024)
        end = space.end() if space else min(len(data), high.start() + 1024)
        sample += data[start:end]
    return bytes(sample)


def _replacing(data: bytearray, encoding: str) -> DecodedText:
    try:
        return DecodedText(str(data, encoding), encoding)
    except UnicodeDecodeError:
        text = str(data, encoding, "replace")
    return DecodedText(text, encoding, (f"{text.count(chr(0xFFFD))} sequences that are no {encoding} were replaced",))


def _mended_utf8(data: bytearray) -> DecodedText:
    text, faults = _FAULTS.subn(_mend, str(data, "utf-8", "surrogateescape"))
    return DecodedText(text, "utf-8", (f"{faults} invalid UTF-8 sequences were read as Windows-1252 or replaced",))


def _mend(fault: re.Match[str]) -> str:
    """A single byte inside a word is most likely a letter pasted from a Windows-1252 text."""
    text, (start, end) = fault.string, fault.span()
    if end - start == 1 and end < len(text):
        letter = bytes((ord(fault[0]) - 0xDC00,)).decode("cp1252", "replace")
        before = text[start - 1] if start else " "
        begins = before.isspace() and text[end].isascii() and text[end].isalpha()
        if letter.isalpha() and (begins or (before.isascii() and before.isalpha())):
            return letter
    return "\ufffd"
