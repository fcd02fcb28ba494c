"""Our reading of a page's content against the library's own."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st
from pdfminer.pdfinterp import PDFContentParser
from pdfminer.pdftypes import PDFStream
from pdfminer.psparser import PSEOF

from qedge_dagster.extractors.pdf.content import ContentParser

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
    """Any content gives the objects that the library's own parser makes of it, wherever its buffers end."""
    assert _objects(ContentParser, contents, buffer) == _objects(PDFContentParser, contents, buffer)
