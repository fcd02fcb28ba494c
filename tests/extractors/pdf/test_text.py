"""Text, order and structure of readable files."""

from __future__ import annotations

import pickle
import unicodedata

import pytest

from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors import ExtractionContext, PdfExtractor, fingerprint
from qedge_dagster.pipeline.fetching import extract_item, hash_item
from qedge_dagster.pipeline.options import IngestionOptions
from tests.chunking.support import chunk
from tests.extractors.pdf.builder import build, extract, fixture, pages, pdf_item, texts


def test_paragraphs_and_information() -> None:
    """Pieces of words drawn apart are joined, gaps are spaces, and what the file says of itself is plain text."""
    document = extract(fixture("text"))
    assert texts(document) == [
        ("paragraph", 0, 1, "The lighthouse keeper counts the ships\nthat pass by night."),
        ("paragraph", 0, 1, "A second paragraph, by kerned pieces and a gap."),
        ("paragraph", 0, 1, "Caf\xe9 (closed)"),
    ]
    assert document.text == "\n\n".join(text for *_, text in texts(document))
    assert document.metadata == {
        "title": "Lights",
        "author": "Ren\xe9",
        "keywords": "\xe4",
        "created": "2024-03-05T12:01:02+01:00",
        "modified": "yesterday",
        "pages_with_text": 1,
        "page_coverage": 1.0,
    }
    assert (document.page_count, document.has_text_layer, document.warnings) == (1, True, ())


def test_two_columns() -> None:
    """`layout` reads column by column between what runs across; `content` keeps the order of the file."""
    by_layout = [text for *_, text in texts(extract(fixture("two_columns"), reading_order="layout"))]
    assert by_layout == [
        "A headline above both columns of the page",
        "Left column, the first line of it.\nLeft column, the second line of it.\nLeft column, the third line of it.",
        "Right column, the first line of it.\nRight column, the second line of it.\n"
        "Right column, the third line of it.",
        "A sentence in the middle that runs across both of the columns.",
        "Left column, below the sentence.\nLeft column, the last line of it.",
        "Right column, below the sentence.\nRight column, the last line of it.",
    ]
    by_content = [text for *_, text in texts(extract(fixture("two_columns")))]
    assert by_content[1].split("\n")[0] == "Left column, the first line of it. Right column, the first line of it."
    assert sorted(" ".join(by_content).split()) == sorted(" ".join(by_layout).split())


@pytest.mark.parametrize("order", ["content", "layout"])
def test_table(order: str) -> None:
    """The short cells of a table are no columns: it is read row by row in both orders."""
    assert extract(fixture("table"), reading_order=order).text == "City Ships Year\nRiga 12 1901\nOslo 7 1902"


def test_hyphens() -> None:
    """Words broken at the end of a line are whole; hyphens that seem to be the word's own stay."""
    assert extract(fixture("hyphens")).text == (
        "The lighthouse sends an e-mail to a state-of-the-art receiver, to Jean-\nPaul, a 12-fold invisible, "
        "softly broken word, and a dash -\nalone."
    )
    kept = extract(fixture("hyphens"), join_hyphens=False).text
    assert kept.startswith("The light-\nhouse sends an e-\nmail")
    assert "in\xadvisible, soft\xad\nly" in kept


def test_fonts() -> None:
    """Ligatures are letters; glyphs named by numbers and Chinese in a Western encoding are told; others are U+FFFD."""
    document = extract(fixture("fonts"))
    assert document.text == "efficient fire floats\n\xe9t\ufffd\n\u76ee\u5f55"
    assert document.warnings == ("page 1 of 1: with letters that their fonts do not tell (U+FFFD)",)


def test_hyphen_of_windows() -> None:
    """The second hyphen of the Windows encoding is one, not a blank."""
    source = pages(["BT /F1 12 Tf 14 TL 72 720 Td (light\\255) Tj T* (house well\\255known) Tj ET"])
    source = source.replace("/BaseFont /Helvetica", "/BaseFont /Helvetica /Encoding /WinAnsiEncoding")
    assert extract(build(source)).text == "lighthouse well-known"


def test_right_to_left() -> None:
    """Hebrew drawn from left to right or from right to left is read from right to left, numbers from left to right."""
    font = (
        "/Type1 /BaseFont /Helvetica /Encoding << /Differences [97 /afii57664 /afii57665 /afii57666] >> "
        "/FirstChar 0 /Widths [" + "500 " * 128 + "] /FontDescriptor << /FontName /X >>"
    )
    visual = "BT /F1 12 Tf 1 0 0 1 72 720 Tm (12 cba) Tj ET"
    logical = "BT /F1 12 Tf 1 0 0 1 92 720 Tm (a) Tj 1 0 0 1 86 720 Tm (b) Tj 1 0 0 1 80 720 Tm (c) Tj ET"
    for content, expected in ((visual, "\u05d0\u05d1\u05d2 12"), (logical, "\u05d0\u05d1\u05d2")):
        source = pages([content]).replace("/Type1 /BaseFont /Helvetica", font).replace("/Helvetica", "/Unknown")
        assert extract(build(source)).text == expected


def test_rotated_page_and_text() -> None:
    """A page turned on its side, and lines drawn upwards, are read as lines."""
    upwards = "BT /F1 12 Tf 0 1 -1 0 100 100 Tm (Drawn upwards,) Tj 0 1 -1 0 114 100 Tm (in two lines) Tj ET"
    assert extract(build(pages([upwards]))).text == "Drawn upwards,\nin two lines"
    turned = pages(["BT /F1 12 Tf 72 720 Td (On its side) Tj ET"]).replace("/Parent 2 0 R", "/Parent 2 0 R /Rotate 90")
    assert extract(build(turned)).text == "On its side"


def test_blanks_at_the_end_of_a_piece() -> None:
    """A blank drawn at the end of a piece parts it from what continues the line at another size."""
    content = "BT /F1 12 Tf 72 720 Td (small ) Tj /F1 30 Tf (LARGE ) Tj 200 0 Td (apart) Tj ET"
    assert extract(build(pages([content]))).text == "small LARGE apart"


def test_outline() -> None:
    """Outline titles found on their page make that line the heading, over several lines and in another spelling; others
    are added. Destinations are direct, actions, indices, and names of both kinds."""
    assert texts(extract(fixture("outline"))) == [
        ("paragraph", 0, 1, "17"),
        ("heading", 1, 1, "1. LIGHT HOUSES"),
        ("paragraph", 0, 1, "They stand at the coast."),
        ("heading", 2, 1, "1.1 Of towers and of lamps"),
        ("paragraph", 0, 1, "A lamp is at the top."),
        ("heading", 1, 2, "Ships, not named on their page"),
        ("paragraph", 0, 2, "Ships pass by night."),
        ("heading", 1, 3, "The sea"),
        ("paragraph", 0, 3, "It is wide."),
        ("heading", 2, 3, "Fish"),
        ("paragraph", 0, 3, "They are many."),
    ]


def test_heading_paths() -> None:
    """The outline is the heading path of the chunks, across pages."""
    document = extract(fixture("outline"))
    drafts = chunk("auto", document, min_tokens=1)
    assert [(draft.heading_path, draft.page, draft.text) for draft in drafts] == [
        ((), 1, "17"),
        (("1. LIGHT HOUSES",), 1, "They stand at the coast."),
        (("1. LIGHT HOUSES", "1.1 Of towers and of lamps"), 1, "A lamp is at the top."),
        (("Ships, not named on their page",), 2, "Ships pass by night."),
        (("The sea",), 3, "It is wide."),
        (("The sea", "Fish"), 3, "They are many."),
    ]


def test_hostile_outline() -> None:
    """Cycles, entries without title or target, and broken name trees cost no text."""
    assert texts(extract(fixture("hostile_outline"))) == [
        ("heading", 1, 1, "First"),
        ("paragraph", 0, 1, "text below it"),
    ]


def test_partly_scanned() -> None:
    """Pages that are pictures, drawn inline or not, are named in a warning; an empty page is none of them."""
    document = extract(fixture("partly_scanned"))
    assert texts(document) == [("paragraph", 0, 2, "A caption below a picture")]
    assert document.warnings == ("pages 1, 3 of 4: pictures without text: OCR would make them searchable",)
    assert (document.page_count, document.metadata["page_coverage"], document.has_text_layer) == (4, 0.25, True)


def test_no_letters() -> None:
    """Glyphs without letters are no text layer."""
    document = extract(fixture("no_letters"))
    assert (document.text, document.blocks, document.has_text_layer) == ("", (), False)
    assert document.warnings == ("page 1 of 1: left out, as their fonts do not say which letters they show",)


def test_no_letters_are_named_as_the_reason() -> None:
    """The pipeline's outcome says why there is no text."""
    item = pdf_item(fixture("no_letters"))
    with pytest.raises(QedgeError) as caught:
        extract_item(item, PdfExtractor(), hash_item(item, IngestionOptions())[0], IngestionOptions())
    assert caught.value.code == 6105
    assert "do not say which letters" in caught.value.message


def test_headings_of_scanned_pages() -> None:
    """A heading on a page without text is that of the next page with text, unless another takes its place there."""
    entries = "\n".join(
        f"{number} 0 obj\n<< /Title ({title}) /Dest [{page} 0 R /Fit] /Next {number + 1} 0 R >>\nendobj"
        for number, title, page in ((81, "Lost", 10), (82, "Carried", 12), (83, "Last", 14))
    )
    source = pages(["", "", "BT /F1 12 Tf 72 720 Td (Text) Tj ET"], more="/Outlines 80 0 R")
    document = extract(build(f"{source}\n80 0 obj\n<< /First 81 0 R >>\nendobj\n{entries}"))
    assert texts(document) == [
        ("heading", 1, 3, "Carried"),
        ("heading", 1, 3, "Last"),
        ("paragraph", 0, 3, "Text"),
    ]


def test_normalization() -> None:
    """Text is composed to NFC unless the context says otherwise."""
    font = "/BaseFont /Helvetica /Encoding << /Differences [96 /uni0301] >>"
    data = build(pages(["BT /F1 12 Tf 72 720 Td (e\\140) Tj ET"]).replace("/BaseFont /Helvetica", font))
    for normalize, form in ((True, "NFC"), (False, "NFD")):
        document = PdfExtractor().extract(pdf_item(data), ExtractionContext(normalize))
        assert document.text == unicodedata.normalize(form, "\xe9")


def test_options() -> None:
    """Options that change the output are in the fingerprint; passwords are nowhere to be seen, and all can be sent to
    another process."""
    extractor = PdfExtractor("layout", ("open sesame",), join_hyphens=False)
    assert [fingerprint(PdfExtractor(page_budget=1, passwords=("x",))), fingerprint(extractor)] == [
        "pdf:1",
        "pdf:1+layout+keep-hyphens",
    ]
    assert "sesame" not in repr(extractor)
    assert pickle.loads(pickle.dumps(extractor)) == extractor  # noqa: S301 - our own
