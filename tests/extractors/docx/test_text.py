"""Text and structure of readable files, kind by kind."""

from __future__ import annotations

import unicodedata

import pytest

from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.extractors import DocxExtractor, fingerprint
from tests.chunking.support import chunk
from tests.extractors.docx.builder import FIXTURES, build, extract, part, read_fixture, shown

_BODY = "<w:p><w:r><w:t>{}</w:t></w:r></w:p>"


@pytest.mark.parametrize("strict", [False, True], ids=["transitional", "strict"])
@pytest.mark.parametrize("name", sorted(path.stem for path in FIXTURES.glob("*.txt")))
def test_kinds(name: str, strict: bool) -> None:
    """Each kind gives its blocks, in both forms of the format."""
    insides, expected = read_fixture(name)
    assert shown(extract(build(insides, strict=strict))) == expected


def test_blocks_cover_the_text() -> None:
    """Blocks are in order and all but the breaks between them is in one; rows and items are lines of one thing."""
    insides, _ = read_fixture("tables")
    insides["word/document.xml"] += "".join(
        f'<w:p><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>{item}</w:t></w:r></w:p>'
        for item in "xy"
    )
    document = extract(build(insides))
    _check_blocks(document)
    assert "Ship | Port\nAda | Old Haven\n" in document.text
    assert "Both\n\nBetween.\n\nOuter" in document.text
    assert document.text.endswith("in, it\n\nx\ny")


def test_header_of_a_table_is_repeated() -> None:
    """The first row of a long table is on every chunk of it."""
    row = (
        "<w:tr><w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc></w:tr>"
    )
    rows = row.format("Vessel", "Draught") + "".join(row.format(f"ship {n}", f"{n} fathoms") for n in range(200))
    chunks = chunk("markdown-heading", extract(build(f"<w:tbl>{rows}</w:tbl>")))
    assert len(chunks) > 3
    assert all(piece.text.startswith("Vessel | Draught\n") for piece in chunks)


def test_heading_paths_reach_the_chunks() -> None:
    """Headings of localised templates are the path of what is below them."""
    insides, _ = read_fixture("headings_localised")
    paths = [list(piece.heading_path) for piece in chunk("markdown-heading", extract(build(insides)))]
    assert ["Le phare", "Der Turm", "Lampen på øen"] in paths


@pytest.mark.parametrize(
    ("options", "fixture", "line", "variant"),
    [
        ({"notes": False}, "notes", "paragraph: In fathoms.", "no-notes"),
        ({"text_boxes": False}, "text_boxes", "paragraph: In the box.", "no-text-boxes"),
    ],
)
def test_left_out_on_request(options: dict[str, bool], fixture: str, line: str, variant: str) -> None:
    """Notes and text boxes are out where that is wanted, and the recipe says so."""
    insides, expected = read_fixture(fixture)
    assert line in expected
    assert line not in shown(extract(build(insides), **options))
    assert fingerprint(DocxExtractor(**options)) == f"docx:1+{variant}"


def test_hidden_text_on_request() -> None:
    """What is formatted as hidden is in where that is wanted; what is deleted is not."""
    insides, _ = read_fixture("hidden")
    assert shown(extract(build(insides), hidden_text=True)) == [
        "paragraph: Seen, hidden, whispered, seen.",
        "paragraph: box of a hidden run",
        "paragraph: A secret.",
        "paragraph: No secret.",
        "paragraph: Only the mark at the end is hidden.",
        "table_row: hidden row",
        "table_row: shown row",
    ]


def test_headers_and_footers_on_request() -> None:
    """Those of the pages come at the end, the same text once, and by default not at all."""
    data = build(
        {
            "word/document.xml": _BODY.format("Body."),
            "word/header1.xml": _BODY.format("Harbour office"),
            "word/header2.xml": _BODY.format("Harbour office"),
            "word/footer1.xml": _BODY.format("Confidential"),
        }
    )
    assert shown(extract(data)) == ["paragraph: Body."]
    with_them = shown(extract(data, headers_footers=True))
    assert with_them == ["paragraph: Body.", "footer: Harbour office", "footer: Confidential"]


def test_what_the_file_says_of_itself() -> None:
    """Title, author, subject and keywords; no dates, which change with every save."""
    core = (
        '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">'
        "<dc:title> The\n harbour </dc:title><dc:creator>A. Keeper</dc:creator><dc:subject/>"
        "<cp:keywords>light, sea</cp:keywords><dcterms:modified>2024-01-01T00:00:00Z</dcterms:modified>"
        "<cp:lastModifiedBy>Nobody</cp:lastModifiedBy></cp:coreProperties>"
    )
    relation = "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties"
    package = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="a" Type="http://x/officeDocument" Target="word/document.xml"/>'
        f'<Relationship Id="b" Type="{relation}" Target="docProps/core.xml"/></Relationships>'
    )
    data = build(_BODY.format("x"), more={"_rels/.rels": package, "docProps/core.xml": core})
    assert extract(data).metadata == {"title": "The harbour", "author": "A. Keeper", "keywords": "light, sea"}


@pytest.mark.parametrize("main", ["word/document2.xml", "document.xml", "Word/Main Text.xml"])
def test_main_part_by_the_relations(main: str) -> None:
    """The document is where the package says, whatever the part is called; case and %20 are the same name."""
    data = build(_BODY.format("Found."), main=main)
    assert extract(data).text == "Found."
    assert extract(data.replace(b"Word/Main Text", b"word/MAIN TEXT")).text == "Found."


def test_text_is_normalised_unless_told() -> None:
    """Composed characters by default, those of the file on request."""
    data = build(_BODY.format("cafe\u0301"))
    assert extract(data).text == unicodedata.normalize("NFC", "cafe\u0301")
    assert extract(data, normalize_text=False).text == "cafe\u0301"


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "windows-1252"])
def test_encodings_of_parts(encoding: str) -> None:
    """A part is in the encoding that it declares."""
    source = (
        f'<?xml version="1.0" encoding="{encoding}"?>'
        '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
        "<w:p><w:r><w:t>Ünter</w:t></w:r></w:p></w:body></w:document>"
    )
    assert extract(build("", more={"word/document.xml": source.encode(encoding)})).text == "Ünter"


def test_charts_and_diagrams() -> None:
    """What is told in parts of their own follows the paragraph that shows it, once."""
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
    relations = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Id="rId1" Type="{kinds}chart" Target="charts/chart1.xml"/>'
        f'<Relationship Id="rId2" Type="{kinds}diagramData" Target="diagrams/data1.xml"/></Relationships>'
    )
    values = "<c:strCache><c:pt><c:v>{}</c:v></c:pt><c:pt><c:v>{}</c:v></c:pt></c:strCache>"
    graph = (
        "<c:title><a:p><a:r><a:t>Ships</a:t></a:r><a:r><a:t> a year</a:t></a:r></a:p></c:title>"
        + values.format("May", "June")
        + "<c:numCache><c:pt><c:v>4711</c:v></c:pt></c:numCache>"
        + values.format("May", "July")
    )
    data = "<dgm:t><a:p><a:r><a:t>First keep watch</a:t></a:r></a:p></dgm:t>"
    parts = {
        "word/_rels/document.xml.rels": relations,
        "word/charts/chart1.xml": part("document", graph).replace("w:document", "c:chartSpace"),
        "word/diagrams/data1.xml": part("document", data).replace("w:document", "dgm:dataModel"),
    }
    drawn = "<w:p><w:r><w:t>{}</w:t><w:drawing>{}</w:drawing></w:r></w:p>"
    body = drawn.format("A chart:", '<c:chart r:id="rId1"/>') + drawn.format("A diagram:", '<dgm:relIds r:dm="rId2"/>')
    assert shown(extract(build(body, more=parts))) == [
        "paragraph: A chart:",
        "paragraph: Ships a year⏎May⏎June⏎July",
        "paragraph: A diagram:",
        "paragraph: First keep watch",
    ]


def test_pictures_alone() -> None:
    """A document of pictures has no text layer, as a scanned PDF has none."""
    assert not extract(build("<w:p><w:r><w:drawing/></w:r></w:p>")).has_text_layer
    assert extract(build("<w:p><w:r><w:drawing/><w:t>text</w:t></w:r></w:p>")).has_text_layer


def test_empty() -> None:
    """A document without text is no failure."""
    document = extract(build("<w:p/>"))
    assert (document.text, document.blocks, document.has_text_layer) == ("", (), True)


def _check_blocks(document: ExtractedDocument) -> None:
    end = 0
    for block in document.blocks:
        assert not document.text[end : block.start].strip()
        assert end <= block.start < block.end
        end = block.end
    assert end == len(document.text)
