"""Files of each format that are nearly right: the repository's own, changed at random, at the level of their bytes or
of what is inside of them."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path

from hypothesis import strategies as st

from tests.extractors.docx import builder as docx
from tests.extractors.pdf import builder as pdf

__all__ = ["FORMATS"]

_ROOT = Path(__file__).parents[2]
_FIXTURES = _ROOT / "tests" / "fixtures"
_SAMPLES = _ROOT / "examples" / "docs"

_TEXT_PIECES = [
    *(b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\0", b"\r", b"\x1a", b"\x80", b"\xc3", b"\xed\xa0\x80", b"\x0c"),
    *("e\u0301".encode(), "\u2028".encode(), "\ufeff".encode(), "日本語".encode("shift_jis"), "日".encode("utf-16-le")),
]
_MARKDOWN_PIECES = [
    *(b"---\n", b"```", b"~~~", b"# ", b"===\n", b"> ", b"- ", b"    ", b"\t", b"|", b"|--|\n", b"<!--", b"-->"),
    *(b"[", b"](", b"![", b"<div>", b"<script>", b"&#0;", b"&amp;", b"\\", b"*" * 50, b"> " * 200, b"[" * 500),
]
_PDF_PIECES = [
    *(b"<<", b">>", b"[", b"]", b"(", b")", b"endobj", b"stream\n", b"endstream", b" 0 R", b"1 0 R", b"10 0 R", b"-1"),
    *(b"/Kids", b"/Parent", b"/Contents", b"/Font", b"/Length", b"/Filter /FlateDecode", b"/Filter /LZWDecode"),
    *(b"99999999999", b"1e309", b"/Prev 0", b"xref", b"trailer", b"BT", b"ET", b" Tj", b" Tf", b" cm", b"q ", b"Q "),
]
_XML_PIECES = [
    *(b"<w:p>", b"</w:p>", b"<w:r>", b"</w:r>", b"<w:t>", b"</w:t>", b"<w:tbl>", b"<w:tr>", b"<w:tc>", b"<w:br/>"),
    *(b"<w:del>", b"<w:fldChar w:fldCharType='begin'/>", b"<mc:AlternateContent>", b"<w:sdt>", b"&#1;", b"&x;", b"&"),
    *(b"<!DOCTYPE a [<!ENTITY x 'y'>]>", b"<![CDATA[", b"\0", b"\xff", b"w:val='99999999999999'", b"<w:p>" * 300),
]


@st.composite
def _changed(draw: st.DrawFn, originals: Sequence[bytes], pieces: Sequence[bytes]) -> bytes:
    """An original in which stretches are replaced, cut out or repeated."""
    data = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(0, 8))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from([0, 0, 1, 4, 30, 500])))
        middle = draw(
            st.sampled_from(pieces)
            | st.binary(max_size=12)
            | st.integers(0, 5).map(lambda times, stretch=bytes(data[start:end]): stretch * times)
        )
        data[start:end] = middle
    return bytes(data)


@st.composite
def _rebuilt_pdfs(draw: st.DrawFn) -> bytes:
    """Objects that are wrong in a file that is right, so that they are reached."""
    sources = [pdf.source_of(path.stem).encode("latin-1") for path in sorted((_FIXTURES / "pdf").glob("*.txt"))]
    changed = draw(_changed(sources, _PDF_PIECES)).decode("latin-1")
    numbers = [int(number) for number in re.findall(r"^(\d+) 0 obj$", changed, re.MULTILINE)]
    # The builder writes a line for each number up to the largest, and needs one object.
    if numbers and max(numbers) <= 1000:
        with suppress(ValueError):
            return pdf.build(changed)
    return changed.encode("latin-1")


@st.composite
def _rebuilt_docx(draw: st.DrawFn) -> bytes:
    """Parts that are wrong in an archive that is right."""
    parts = _parts(draw(st.sampled_from(_DOCX)))
    name = draw(st.sampled_from(sorted(parts)))
    return docx.archive({**parts, name: draw(_changed([parts[name]], _XML_PIECES))})


def _parts(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _read(folder: Path, suffix: str) -> list[bytes]:
    found = [path.read_bytes() for path in sorted(folder.rglob(f"*{suffix}"))]
    assert found, suffix
    return found


_DOCX = _read(_SAMPLES, ".docx") + [
    docx.build(docx.read_fixture(path.stem)[0]) for path in sorted((_FIXTURES / "docx").glob("*.txt"))
]
_PDF = _read(_SAMPLES, ".pdf") + [pdf.fixture(path.stem) for path in sorted((_FIXTURES / "pdf").glob("*.txt"))]
_MARKDOWN = _read(_SAMPLES, ".md") + _read(_FIXTURES / "markdown", ".md") + [b""]
_TEXT = _read(_SAMPLES, ".txt") + _read(_FIXTURES / "languages", ".txt") + [b""]

#: Bytes by the extension of their name.
FORMATS: dict[str, st.SearchStrategy[bytes]] = {
    ".txt": st.binary(max_size=300) | _changed(_TEXT, _TEXT_PIECES),
    ".md": _changed(_MARKDOWN, _MARKDOWN_PIECES + _TEXT_PIECES),
    ".pdf": _rebuilt_pdfs() | _changed(_PDF, _PDF_PIECES),
    ".docx": _rebuilt_docx() | _changed(_DOCX, _XML_PIECES),
}
