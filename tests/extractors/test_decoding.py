"""Bytes → text: BOMs, UTF-8 and its faults, wide encodings, binary content."""

from __future__ import annotations

import io
import random
import tarfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.decoding import decode

_PROSE = "It was a bright cold day in April, and the clocks were striking thirteen.\n" * 30
_WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
_SCRIPTS = {
    "latin": _PROSE,
    "accents": "Où est passé l'été ? Là-bas, près de la forêt.\n" * 30,
    "cyrillic": "Старый мост закрыли на ремонт в начале мая.\n" * 30,
    "chinese": "村口的老井已经有三百多年的历史了。\n" * 30,
    "emoji": "well \U0001f600 done \U0001f469\u200d\U0001f467\n" * 30,
}


def _decode(content: bytes, *, strict: bool = False):
    return decode(io.BytesIO(content), strict)


@pytest.mark.parametrize("encoding", ["utf-8", *_WIDE])
@pytest.mark.parametrize("text", ["", "a", _PROSE, "\U0001f600", _SCRIPTS["chinese"]])
def test_bom(encoding: str, text: str) -> None:
    """A BOM decides, and is not text; strict or not."""
    content = ("\ufeff" + text).encode(encoding)
    for strict in (False, True):
        decoded = _decode(content, strict=strict)
        assert (decoded.text, decoded.encoding, decoded.warnings) == (text, encoding, ())


@pytest.mark.parametrize("encoding", _WIDE)
@pytest.mark.parametrize("script", _SCRIPTS)
@pytest.mark.parametrize("length", [40, 1000])
def test_wide_without_bom(encoding: str, script: str, length: int) -> None:
    """UTF-16 and UTF-32 are recognised without their mark."""
    text = _SCRIPTS[script][:length]
    decoded = _decode(text.encode(encoding))
    assert (decoded.text, decoded.encoding) == (text, encoding)


def test_utf_16_of_odd_length() -> None:
    """A byte cut off at the end costs one character and is told."""
    decoded = _decode(b"\xff\xfe" + "text".encode("utf-16-le") + b"x")
    assert decoded.text == "text\ufffd"
    assert len(decoded.warnings) == 1


def test_utf_16_lone_surrogate() -> None:
    """Half a pair is replaced: no text may hold it."""
    assert _decode(b"\xff\xfea\0\x00\xd8b\0").text == "a\ufffdb"


def test_utf_16_bom_with_a_nul() -> None:
    """The mark of UTF-16 followed by NUL looks like that of UTF-32; the length tells them apart."""
    assert _decode(b"\xff\xfe\0\0a\0b\0c\0").text == " abc"


@given(st.text())
def test_utf_8(text: str) -> None:
    """Any UTF-8 text comes back as it is, but for NULs, a leading BOM and content that is mostly controls."""
    content = ("words enough to be text " + text).encode("utf-8", "ignore")
    decoded = _decode(content)
    expected = content.decode("utf-8")
    while "\0\0" in expected:
        expected = expected.replace("\0\0", "\0")
    assert decoded.text == expected.replace("\0", " ")
    assert decoded.encoding == "utf-8"


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes(content: bytes, strict: bool) -> None:
    """Any bytes give text that can be stored, or a settled error."""
    try:
        decoded = _decode(content, strict=strict)
    except QedgeError as error:
        assert error.code in (6104, 6106)  # noqa: PT017 - either outcome is right
    else:
        assert "\0" not in decoded.text
        decoded.text.encode("utf-8")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Grüße. ".encode() * 50 + "ß".encode()[:1], "Grüße. " * 50 + "\ufffd"),
        ("Grüße. ".encode() * 50 + b"\xff\xfe!", "Grüße. " * 50 + "\ufffd!"),
        ((_PROSE * 3).encode() + b"(\x81\xfe\x8d(\n", _PROSE * 3 + "(\ufffd(\n"),
        ("naïve ".encode() * 4 + b"na\xefve \xc9t\xe9 caf\xe9.", "naïve " * 5 + "Été café."),
    ],
    ids=["cut off", "noise", "noise in ASCII", "pasted Windows-1252"],
)
def test_faulty_utf_8(content: bytes, text: str) -> None:
    """Text that is mostly UTF-8 stays it; a fault is mended inside a word, else replaced, and told."""
    decoded = _decode(content)
    assert (decoded.text, decoded.encoding, len(decoded.warnings)) == (text, "utf-8", 1)


def test_cesu_8() -> None:
    """Surrogate pairs written as if they were characters are joined, lone ones replaced."""
    content = "ok \ud83d\ude00 \ud800 end\n".encode("utf-8", "surrogatepass") * 9
    assert _decode(content).text == "ok \U0001f600 \ufffd end\n" * 9


@pytest.mark.parametrize(
    "content",
    [b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xff\xfe\0\0"],
    ids=["nothing", "UTF-8 BOM", "UTF-16 BOM", "UTF-32 BOM"],
)
def test_empty(content: bytes) -> None:
    """Nothing, or a BOM alone, is an empty text."""
    assert _decode(content).text == ""


def test_nuls_in_text() -> None:
    """A hole of NULs, as a crash leaves in a log, becomes a space and is told."""
    decoded = _decode(b"before\0after\n" + _PROSE.encode() + b"\0" * 500 + b"end")
    assert decoded.text == f"before after\n{_PROSE} end"
    assert decoded.warnings == ("501 NUL characters were replaced by spaces",)


def test_control_characters_in_text() -> None:
    """Escape sequences and a burst of line noise do not make a log binary."""
    content = b"\x1b[31mred\x1b[0m\x07 " * 40 + bytes(range(1, 32)) * 2
    assert _decode(content).text == content.decode()


def _binaries() -> dict[str, bytes]:
    rng = random.Random(7)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("empty"))
    return {
        "nuls": bytes(4096),
        "one nul": b"\0",
        "random": rng.randbytes(5000),
        "compressed": zlib.compress(_PROSE.encode() + rng.randbytes(2000)),
        "elf": b"\x7fELF\x02\x01\x01" + bytes(9),
        "png": b"\x89PNG\r\n\x1a\n" + rng.randbytes(50),
        "pdf": b"%PDF-1.4\n1 0 obj\n",
        "zip": b"PK\x03\x04 and so on",
        "tar": archive.getvalue(),
        "integers": b"".join(rng.randrange(1 << 20).to_bytes(4, "little") for _ in range(2000)),
        "utf-16 bom, then noise": b"\xff\xfe" + rng.randbytes(5000),
        "utf-8 bom, then noise": b"\xef\xbb\xbf" + rng.randbytes(5000),
    }


@pytest.mark.parametrize("name", _binaries())
def test_binary(name: str) -> None:
    """What is no text is refused, strict or not, and the message quotes nothing of it."""
    content = _binaries()[name]
    for strict in (False, True):
        with pytest.raises(QedgeError) as caught:
            _decode(content, strict=strict)
        assert caught.value.code in ((6104, 6106) if "bom" in name and strict else (6104,))
        assert caught.value.message.isascii()


@pytest.mark.parametrize(
    "content",
    [
        "café".encode("cp1252"),
        "Привет".encode("koi8_r"),
        _PROSE.encode("utf-16-le"),
        b"\xef\xbb\xbfa\xff",
        b"\xff\xfea",
    ],
)
def test_strict(content: bytes) -> None:
    """Strict takes a sound BOM or UTF-8 only; without it the same bytes are text."""
    with pytest.raises(QedgeError) as caught:
        _decode(content, strict=True)
    assert caught.value.code == 6106
    assert _decode(content).text


def test_strict_takes_utf_8() -> None:
    """Strict is no hindrance to UTF-8."""
    assert _decode("Grüße".encode(), strict=True).text == "Grüße"


def test_stream_is_read_in_parts() -> None:
    """No read asks for the whole file."""
    sizes: list[int | None] = []

    class Recording(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            sizes.append(size)
            return super().read(size)

    assert decode(Recording(b"x" * 1_000_000)).text == "x" * 1_000_000
    assert all(size is not None and 0 < size <= 1 << 20 for size in sizes)
    assert len(sizes) > 3
