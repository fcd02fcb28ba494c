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
_HEAD_BYTES = 64 * 1024

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
# Shares of the bytes. Random bytes hold 9.8 % of these controls, compressed files about as many; text holds none, or a
# burst of line noise. UTF-8 is proof enough of text to allow for more.
_MAX_CONTROLS = 0.3
_MAX_CONTROLS_LEGACY = 0.05
# Above this share of NULs content is UTF-16, UTF-32 or no text.
_MAX_NULS = 0.25
# Shares of the characters that text does not have, where a BOM speaks for UTF-16 and where none does. In random bytes
# read as UTF-16 it is about a sixth.
_MAX_ODD_BOM = 0.05
_MAX_ODD = 0.02
_ODD_CATEGORIES = frozenset({"Cc", "Cn", "Co"})
# ASCII with a stray byte and a stray NUL makes fair Chinese when read as UTF-16.
_MAX_PRINTABLE_WIDE = 0.8
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
    decoded = _by_bom(data, strict_utf8) or _by_content(data, nuls, controls, strict_utf8)
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
        if encoding.startswith("utf-16"):
            odd, total = _oddities(data[:_HEAD_BYTES], encoding)
            if odd <= max(1, _MAX_ODD_BOM * total):
                return _replacing(data, encoding)
    return None


def _by_content(data: bytearray, nuls: int, controls: int, strict: bool) -> DecodedText:
    no_text = QedgeError(
        6104, f"of {len(data)} bytes {nuls} are NUL and {controls} other control characters: it is no text"
    )
    if nuls > _MAX_NULS * len(data) or controls > _MAX_CONTROLS * len(data):
        wide = _wide(data, strict)
        if wide is None:
            raise no_text
        return wide
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError as error:
        wide = _wide(data, strict) if nuls else None
        if wide is not None:
            return wide
        if controls > _MAX_CONTROLS_LEGACY * len(data):
            raise no_text from None
        if strict:
            raise QedgeError(6106, f"not UTF-8 at byte {error.start}") from None
        return _guessed(data)
    return _escaped_japanese(data) or DecodedText(text, "utf-8")


def _wide(data: bytearray, strict: bool) -> DecodedText | None:
    """UTF-16 or UTF-32 without BOM."""
    head = data[:_HEAD_BYTES]
    if len(head) - len(head.translate(None, _PRINTABLE)) > _MAX_PRINTABLE_WIDE * len(head):
        return None
    # Where the zeros are tells the byte order: in little-endian text they are the later bytes of ASCII.
    order = "le" if head[1::2].count(0) > head[::2].count(0) else "be"
    for encoding in (f"utf-32-{order}", f"utf-16-{order}"):
        odd, total = _oddities(head, encoding)
        if odd <= _MAX_ODD * total:
            if strict:
                raise QedgeError(6106, f"not UTF-8, by the look of it {encoding.upper()} without a BOM")
            return _replacing(data, encoding)
    return None


def _oddities(head: bytearray, encoding: str) -> tuple[int, int]:
    """How many characters that text does not have there would be, of how many in all."""
    counts = Counter(str(head, encoding, "replace"))
    odd = (n for c, n in counts.items() if c not in "\t\n\r\f" and unicodedata.category(c) in _ODD_CATEGORIES)
    return sum(odd) + counts["\ufffd"], counts.total()


def _escaped_japanese(data: bytearray) -> DecodedText | None:
    """ISO-2022-JP, of Japanese mail: all bytes are ASCII, and escape sequences say what they mean."""
    if b"\x1b$" not in data[:_HEAD_BYTES]:
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

    sample = _sample(data, _HEAD_BYTES)
    text = sample.decode("utf-8", "surrogateescape")
    faults = sum(map(len, _FAULTS.findall(text)))
    valid = sum(character > "\x7f" for character in text) - faults
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
    """The bytes above ASCII with what is around them. A part begins after an ASCII character, never inside a
    double-byte one."""
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
