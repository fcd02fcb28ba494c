"""Plain text and its paragraphs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extractors.support import extract_text

_INVISIBLE = "\u200b\u2060\ufeff"


def _pieces(text: str) -> list[str]:
    document = extract_text(text.encode())
    assert all(block.kind == "paragraph" for block in document.blocks)
    return [document.text[block.start : block.end] for block in document.blocks]


@pytest.mark.parametrize(
    ("text", "paragraphs"),
    [
        ("", []),
        (" \n\t\n\u00a0\u3000\x0b\n", []),
        ("one\ntwo", ["one\ntwo"]),
        ("one\n\ntwo\n", ["one", "two"]),
        ("one\r\n\r\ntwo\r\rthree", ["one", "two", "three"]),
        ("  one  \n \t\u00a0\n\n\n  two\n", ["one", "two"]),
        ("page\fpage\n\f\npage", ["page", "page", "page"]),
        ("a\x0bb\x1cc\x85d\u2028e\u2029f", ["a\x0bb\x1cc\x85d\u2028e\u2029f"]),
        ("\u200b\n\n\ufeff \u200b\n\nword\u200b", ["word\u200b"]),
    ],
)
def test_paragraphs(text: str, paragraphs: list[str]) -> None:
    """Blank lines and form feeds separate; edges are trimmed; nothing invisible is a paragraph."""
    assert _pieces(text) == paragraphs


@given(st.text(st.sampled_from("ab \n\t\f\r\x0b\x85\u2028\u200bé\u0301日"), max_size=60))
def test_blocks_cover_the_text(text: str) -> None:
    """Blocks are in order, apart, trimmed, and hold everything that can be seen."""
    document = extract_text(text.encode())
    end = 0
    for block in document.blocks:
        assert end <= block.start < block.end <= len(document.text)
        assert document.text[end : block.start].strip(_INVISIBLE + " \n\t\f\x0b\x85\u2028") == ""
        piece = document.text[block.start : block.end]
        assert piece == piece.strip() != ""
        end = block.end
    assert document.text[end:].strip(_INVISIBLE + " \n\t\f\x0b\x85\u2028") == ""


def test_document_fields() -> None:
    """What the document says of itself."""
    document = extract_text("Füße".encode("cp1252"))
    assert (document.document_id, document.extractor_id, document.extractor_version) == ("a.txt", "text", 1)
    assert (document.media_type, document.page_count, document.has_text_layer) == ("text/plain", None, True)
    assert document.metadata == {"encoding": "cp1252"}


def test_normalisation() -> None:
    """Line ends and composition are normalised by default, and left alone on demand; offsets fit either way."""
    content = "e\u0301\r\n\r\nb\rc".encode()
    assert extract_text(content).text == "é\n\nb\nc"
    raw = extract_text(content, normalize=False)
    assert raw.text == content.decode()


def test_same_text_in_other_bytes_keeps_its_version() -> None:
    """A flip of line ends changes nothing for the stages that follow."""
    assert extract_text(b"a\r\n\r\nb").version() == extract_text(b"a\n\nb").version()
