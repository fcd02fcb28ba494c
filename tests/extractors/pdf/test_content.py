"""Our reading of a page's content against the library's own."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pdfminer.pdfinterp import PDFContentParser
from pdfminer.pdftypes import PDFStream
from pdfminer.psparser import PSEOF

from qedge_dagster.extractors.pdf.content import ContentParser, MendingParser
from tests.extractors.pdf.builder import build, extract, pages

_TOKENS = [
    *(b"0", b"12", b"-3", b"+4", b"4.5", b"-.5", b"6.", b".", b"-", b"1-2", b"7e3", b"1" * 20, b"1" * 5000),
    *(b"(a string)", b"()", b"(a (nested) one)", b"(one \\) more\\051)", b"(never ended", b")"),
    *(b"<48656C>", b"<4 8>", b"<486>", b"<>", b"<zz>", b"<48", b"/F1", b"/a#20b", b"/", b"/\xe9", b"/a.b-c+d"),
    *(b"[", b"]", b"<<", b">>", b"{", b"}", b"% a comment\n", b"true", b"false", b"null", b"T*", b"'", b'"', b"Tj"),
    *(b"truest", b"a\0b", b"BI /W 1 /H 1 ID", b"BI ID \xff(EI)EI EI", b"EI", b"!", b"#", b"\0", b"\x80"),
]
_BLANKS = [b" ", b"\n", b"", b"\r\n", b"\t\0 "]
_CONTENTS = st.lists(st.tuples(st.sampled_from(_TOKENS), st.sampled_from(_BLANKS)).map(b"".join), max_size=20)


def _objects(kind: type[PDFContentParser], contents: list[bytes], buffer: int) -> list[str]:
    """What the parser gives, and how it ends."""
    found: list[str] = []
    with patch.object(kind, "BUFSIZ", buffer):
        try:
            parser = kind([PDFStream({}, content) for content in contents])
            while True:
                value = parser.nextobject()[1]
                found.append(repr((value.attrs, value.get_data()) if isinstance(value, PDFStream) else value))
        except PSEOF:
            return found
        except Exception as error:
            return [*found, repr(error)]


@given(st.lists(_CONTENTS.map(b"".join), min_size=1, max_size=3), st.sampled_from([1, 3, 16, 4096]))
@example([b"1 0 0 1 72 720 Tm (split", b" in two) Tj"], 4096)
def test_the_same_as_the_library(contents: list[bytes], buffer: int) -> None:
    """Any content gives the objects that the library's own way makes of it, wherever its buffers end: mended, or as it
    is where there is nothing to mend."""
    objects = _objects(ContentParser, contents, buffer)
    assert objects == _objects(MendingParser, contents, buffer)
    if not any(opening in content for content in contents for opening in (b"[", b"<<", b"{", b"(")):
        assert objects == _objects(PDFContentParser, contents, buffer)


def test_form_without_bounds() -> None:
    """A form that does not say how large it is is drawn."""
    form = "80 0 obj\n<< /Subtype /Form >>\nstream\nBT /F1 12 Tf 72 600 Td (in it) Tj ET\nendstream\nendobj"
    source = pages(["/X Do"], "/XObject << /X 80 0 R >>")
    assert extract(build(f"{source}\n{form}")).text == "in it"


def test_string_across_streams() -> None:
    """A string that two streams of a page share is whole, with a blank between its parts."""
    source = pages(["BT /F1 12 Tf 72 720 Td (in two"]).replace("/Contents 11 0 R", "/Contents [11 0 R 80 0 R]")
    assert extract(build(f"{source}\n80 0 obj\n<< >>\nstream\nparts) Tj ET\nendstream\nendobj")).text == "in two parts"


@pytest.mark.parametrize("damage", ["[", "[" * 100_000, "<< /A [", "{ <<"])
def test_content_that_is_not_ended(damage: str) -> None:
    """An array or a dictionary without its end costs no text that follows."""
    content = f"BT /F1 12 Tf 72 720 Td (Before) Tj ET {damage} BT /F1 12 Tf 72 600 Td (After) Tj ET"
    document = extract(build(pages([content])))
    assert (document.text, document.warnings) == ("Before\n\nAfter", ())


def test_content_that_ends_too_early() -> None:
    """Text after a picture without its end, or in an array at the end, is missing, and a warning says so."""
    for rest in ("BI /W 10 /H 10 ID xxxx BT /F1 12 Tf (After) Tj ET", "[(After"):
        document = extract(build(pages([f"BT /F1 12 Tf 72 720 Td (Before) Tj ET {rest}"])))
        assert document.text == "Before"
        assert document.warnings == ("page 1 of 1: read in part, as they are damaged",)
