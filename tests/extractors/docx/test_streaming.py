"""Any tree of elements is followed to its end, and in whatever pieces it comes."""

from __future__ import annotations

import re
from io import BytesIO
from typing import BinaryIO, cast
from xml.sax.saxutils import escape

from hypothesis import given
from hypothesis import strategies as st

from qedge_dagster.extractors import DocxExtractor, ExtractionContext
from qedge_dagster.extractors.docx.story import StoryOptions, StoryReader
from qedge_dagster.extractors.docx.styles import Styles
from qedge_dagster.extractors.docx.xml import parse, word
from qedge_dagster.sources import SourceItem
from tests.extractors.docx.builder import build, docx_item, part

_ELEMENTS = (
    *(
        "w:p",
        "w:r",
        "w:tbl",
        "w:tr",
        "w:tc",
        "w:txbxContent",
        "w:ins",
        "w:del",
        "w:moveFrom",
        "w:moveTo",
        "w:pPr",
        "w:rPr",
    ),
    *(
        "w:trPr",
        "w:tcPr",
        "w:cellDel",
        "w:sdt",
        "w:sdtPr",
        "w:sdtContent",
        "w:hyperlink",
        "w:fldSimple",
        "w:ruby",
        "w:rt",
    ),
    *("mc:AlternateContent", "mc:Choice", "mc:Fallback", "m:oMath", "m:r", "m:sup", "w:rPrChange", "w:unknown"),
)
_LEAVES = (
    *(
        'w:fldChar w:fldCharType="begin"',
        'w:fldChar w:fldCharType="separate"',
        'w:fldChar w:fldCharType="end"',
        "w:tab",
    ),
    *("w:br", "w:vanish", 'w:vanish w:val="0"', 'w:outlineLvl w:val="1"', 'w:numId w:val="1"', 'w:pStyle w:val="x"'),
    *('w:footnoteReference w:id="1"', 'w:sym w:char="00e9"', "w:noBreakHyphen", "w:altChunk"),
)
_words = st.text("abcä東é𝄞 ", min_size=1, max_size=6).map(lambda text: f"<w:t>{escape(text)}</w:t>")
_leaves = _words | _words | st.sampled_from([f"<{leaf}/>" for leaf in _LEAVES])


def _element(name: str, children: list[str]) -> str:
    return f"<{name}>{''.join(children)}</{name}>"


_trees = st.recursive(
    _leaves,
    lambda inner: st.builds(_element, st.sampled_from(_ELEMENTS), st.lists(inner, max_size=5)),
    max_leaves=40,
)
_bodies = st.lists(_trees, max_size=6).map("".join)


class _InPieces:
    """A stream that cannot seek and gives no more than `piece` bytes at a time, as one from a network may."""

    def __init__(self, data: bytes, piece: int) -> None:
        self._stream, self._piece = BytesIO(data), piece

    def read(self, size: int = -1) -> bytes:
        return self._stream.read(self._piece if size < 0 else min(size, self._piece))

    def seekable(self) -> bool:
        return False

    def __enter__(self) -> _InPieces:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@given(_bodies, st.integers(1, 700))
def test_streamed_and_whole_are_the_same(body: str, piece: int) -> None:
    """A part that is read piece by piece gives what it gives as one piece."""
    data = part("document", body).encode()
    results: list[object] = []
    for size in (len(data) + 1, piece):
        reader = StoryReader(Styles(), StoryOptions())
        parse(BytesIO(data), reader, "p", word("document"), size)
        results.append(reader.blocks)
    assert results[0] == results[1]


@given(_bodies, st.integers(1, 700))
def test_documents_from_streams_that_cannot_seek(body: str, piece: int) -> None:
    """So does the whole file, from a stream that goes one way."""
    data = build(body)
    item = SourceItem("a.docx", "x", lambda: cast(BinaryIO, _InPieces(data, piece)))
    extractor = DocxExtractor()
    one_way = extractor.extract(item, ExtractionContext())
    assert one_way == extractor.extract(SourceItem("a.docx", "x", docx_item(data).open), ExtractionContext())


@given(_bodies)
def test_no_text_is_lost_or_doubled(body: str) -> None:
    """Without what leaves text out, each text is there as often as in the tree, wherever it is."""
    for name in ("del", "moveFrom", "cellDel", "fldChar", "vanish", "sdtPr", "rPrChange", "footnoteReference"):
        body = re.sub(rf"(</?)w:{name}\b", r"\1w:span", body)
    body = re.sub(r"(</?)mc:(?:Choice|Fallback|AlternateContent)\b", r"\1w:span", body)
    body = re.sub(r"(</?)w:(?:rt|ruby)\b", r"\1w:span", body)
    body = body.replace("<w:sym ", "<w:span ")  # it is dropped where there is no paragraph
    reader = StoryReader(Styles(), StoryOptions())
    parse(BytesIO(part("document", body).encode()), reader, "p")
    found = "".join(block.text for block in reader.blocks)
    texts = "".join(re.findall(r"<w:t>([^<]*)</w:t>", body))
    assert sorted(re.sub(r"[\s|,^()-]", "", found)) == sorted(re.sub(r"\s", "", texts))
