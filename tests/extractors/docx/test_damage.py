"""Broken, mislabelled and hostile files: a clear outcome, and nothing expanded beyond its bounds."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO
from urllib.parse import quote

import pytest

from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.docx.story import StoryReader
from tests.extractors.docx.builder import archive, build, extract, part, shown

_BODY = "<w:p><w:r><w:t>Found.</w:t></w:r></w:p>"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 504


def _refusal(data: bytes) -> QedgeError:
    with pytest.raises(QedgeError) as caught:
        extract(data)
    return caught.value


def _outcome(data: bytes) -> object:
    try:
        extract(data)
    except QedgeError as error:
        return error.code
    return "text"


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", 6104, "the file is empty"),
        (b"\0" * 5000, 6104, "nothing but blanks"),
        (b"%PDF-1.7\n", 6104, "the content is a PDF document, not a Word document"),
        (b"<!DOCTYPE html><html>", 6104, "the content is HTML, a web page"),
        (b'<?xml version="1.0"?><pkg:package/>', 6104, "the content is XML"),
        (b"{\\rtf1 text}", 6104, "the content is RTF"),
        (b"\x89PNG\r\n\x1a\n", 6104, "the content is a PNG image"),
        (b"plain text", 6104, "not a Word document"),
        (b"PK\x03\x04 cut off", 6104, "damaged or was cut off"),
        (_OLE + "EncryptedPackage".encode("utf-16-le"), 6103, "encrypted with a password"),
        (_OLE + b"\0" * (1 << 20) + "WordDocument".encode("utf-16-le"), 6104, "Word document of the old kind (.doc)"),
        (_OLE + b"\1" * ((1 << 20) - 522) + "WordDocument".encode("utf-16-le"), 6104, "of the old kind"),
        (_OLE, 6104, "an OLE document of another program"),
        (archive({"xl/workbook.xml": "<x/>"}), 6104, "the content is an Excel workbook"),
        (archive({"ppt/presentation.xml": "<x/>"}), 6104, "the content is a PowerPoint presentation"),
        (archive({"mimetype": "x", "content.xml": "<x/>"}), 6104, "the content is an OpenDocument file"),
        (archive({"META-INF/container.xml": "<x/>"}), 6104, "the content is an EPUB book"),
        (archive({"photo.jpg": b"\xff\xd8"}), 6104, "the content is a ZIP archive"),
        (archive({}), 6104, "not a Word document"),
    ],
)
def test_what_is_no_word_document(data: bytes, code: int, words: str) -> None:
    """The message says what it is instead."""
    refusal = _refusal(data)
    assert (refusal.code, words in refusal.message) == (code, True), refusal.message


def test_old_documents_have_a_remedy() -> None:
    """How to make a .docx of a .doc."""
    assert "soffice" in (_refusal(_OLE + "WordDocument".encode("utf-16-le")).remedy or "")


@pytest.mark.parametrize(
    ("root", "words"), [("workbook", "an Excel workbook"), ("glossaryDocument", "XML of another kind")]
)
def test_a_main_part_of_another_kind(root: str, words: str) -> None:
    """The root of the part that the package names as its document must be one of Word's."""
    refusal = _refusal(
        build(_BODY, more={"word/document.xml": part("document", _BODY).replace("w:document", f"w:{root}")})
    )
    assert refusal.code == 6104
    assert words in refusal.message


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9, 0.999])
def test_cut_off(keep: float) -> None:
    """A file that was cut off is damaged, wherever the cut is."""
    data = build(_BODY * 200)
    assert _refusal(data[: int(len(data) * keep)]).code == 6104


@pytest.mark.parametrize("position", range(0, 2000, 37))
def test_flipped_bytes(position: int) -> None:
    """A flipped byte anywhere gives the text, or says that the file is damaged."""
    data = bytearray(build({"word/document.xml": _BODY * 50, "word/styles.xml": "", "word/footnotes.xml": ""}))
    data[position % len(data)] ^= 0x55
    assert _outcome(bytes(data)) in ("text", 6103, 6104)


@pytest.mark.parametrize("encoding", ["gb2312", "utf-7", "no-such", "utf-32"])
def test_encodings_of_no_word_document(encoding: str) -> None:
    """A part in an encoding that would need a decoder of its own is refused."""
    source = part("document", _BODY).replace("UTF-8", encoding)
    assert _refusal(build(_BODY, more={"word/document.xml": source})).code == 6104


def test_not_well_formed() -> None:
    """XML that breaks off is damage, and the message says where."""
    refusal = _refusal(build(_BODY, more={"word/document.xml": part("document", _BODY)[:-20]}))
    assert refusal.code == 6104
    assert "word/document.xml is damaged" in refusal.message


@pytest.mark.parametrize("name", ["styles", "footnotes"])
def test_damage_beside_the_main_part(name: str) -> None:
    """Without styles or notes there is a document still, and a warning."""
    data = build({"word/document.xml": _BODY, f"word/{name}.xml": "<w:broken>"})
    lines = shown(extract(data))
    assert lines[0] == "paragraph: Found."
    assert lines[1].startswith(f"warning: word/{name}.xml is damaged")


@pytest.mark.parametrize("name", ["styles", "footnotes"])
def test_missing_beside_the_main_part(name: str) -> None:
    """The same where the part is named and not there."""
    target = f'<Relationship Id="r" Type="http://x/{name}" Target="{name}.xml"/>'
    relations = (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{target}</Relationships>'
    )
    lines = shown(extract(build(_BODY, more={"word/_rels/document.xml.rels": relations})))
    assert lines == ["paragraph: Found.", f"warning: word/{name}.xml is missing from the archive"]


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>',
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE x SYSTEM "http://example.org/x.dtd">',
    ],
)
@pytest.mark.parametrize("name", ["word/document.xml", "_rels/.rels"])
def test_document_types_are_refused(name: str, doctype: str) -> None:
    """No entity is expanded and nothing is fetched: a document type is refused before it says anything."""
    source = f'<?xml version="1.0"?>{doctype}<x>&a;</x>'
    refusal = _refusal(build(_BODY, more={name: source}))
    assert refusal.code == 6104
    assert "document type" in refusal.message


def test_an_archive_bomb() -> None:
    """A part that expands a thousandfold is refused when it passes its bound, and not read to its end."""
    bomb = part("document", _BODY + "<w:p/>" + " " * (64 << 20))
    refusal = _refusal(build(_BODY, more={"word/document.xml": bomb}))
    assert refusal.code == 6104
    assert "expands beyond all measure" in refusal.message


def test_a_size_that_is_a_lie() -> None:
    """What the archive says of a part's size is not believed."""
    data = bytearray(build(_BODY, more={"word/document.xml": part("document", _BODY + " " * 100_000)}))
    with zipfile.ZipFile(BytesIO(bytes(data))) as file:
        size = file.getinfo("word/document.xml").file_size
    for place in range(len(data) - 3):
        if data[place : place + 4] == size.to_bytes(4, "little"):
            data[place : place + 4] = (50).to_bytes(4, "little")
    assert _refusal(bytes(data)).code == 6104


def test_encrypted_entries() -> None:
    """An archive with a password of its own kind is encrypted, too."""
    data = bytearray(build(_BODY))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.find(signature)
        while place >= 0:
            data[place + offset] |= 1
            place = data.find(signature, place + 4)
    assert _refusal(bytes(data)).code == 6103


@pytest.mark.parametrize(
    "nesting", ["w:tbl><w:tr><w:tc", "w:txbxContent", "w:p", "w:r", "w:ins", "mc:AlternateContent"]
)
def test_deep_nesting(nesting: str) -> None:
    """Fifty thousand levels of anything are followed, without recursion."""
    opened = "".join(f"<{name}>" for name in nesting.split("><"))
    closed = "".join(f"</{name}>" for name in reversed(nesting.split("><")))
    assert extract(build(opened * 50_000 + _BODY + closed * 50_000)).text == "Found."


def test_no_relations() -> None:
    """Where the package does not say which part is the document, the usual one is read as plain text, with a
    warning."""
    data = archive({"word/document.xml": part("document", _BODY * 2)})
    assert shown(extract(data)) == [
        "paragraph: Found.",
        "paragraph: Found.",
        "warning: read as plain text, without headings and tables: the archive does not say which part is the document",
    ]


def test_a_structure_that_cannot_be_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours costs the structure and not the text."""

    def fault(*_: object) -> None:
        raise KeyError("a fault")

    monkeypatch.setattr(StoryReader, "_start_paragraph", fault)
    assert shown(extract(build(_BODY))) == [
        "paragraph: Found.",
        "warning: read as plain text, without headings and tables: KeyError in its structure",
    ]


def test_plain_text_is_as_careful() -> None:
    """The other reader is given the part that was looked through, and no other, whatever the parts are called."""
    trap = part("document", _BODY).replace("<w:document", '<!DOCTYPE x [<!ENTITY a "expanded">]><w:document')
    trap = trap.replace("Found.", "&a;")
    sound = part("document", _BODY)
    for name in ("/word/document.xml", "word/header1_xml", "word/footer1.xml"):
        assert extract(archive({name: trap, "word/Document.XML": sound})).text == "Found."
    assert _outcome(archive({"word/document.xml": trap})) == 6104


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods_of_compression(method: int) -> None:
    """Those that expand in one piece are refused, and not tried."""
    content = BytesIO()
    with zipfile.ZipFile(content, "w", method) as file:
        file.writestr("word/document.xml", part("document", _BODY))
    refusal = _refusal(content.getvalue())
    assert (refusal.code, "compressed by a method" in refusal.message) == (6104, True)


def test_damaged_relations() -> None:
    """Without the relations of the document, its text is there still."""
    lines = shown(extract(build(_BODY, more={"word/_rels/document.xml.rels": "<Relationships"})))
    assert lines[0] == "paragraph: Found."
    assert lines[1].startswith("warning: read without styles, notes")


def test_names_of_parts_in_messages() -> None:
    """A part may be called anything: what cannot be shown is not, nor is a name without end; and it is read once."""
    names = ["a\x1b[31m" + "b" * 10_000, *("sTyLeS.xml" if n % 2 else "styles.XML" for n in range(50))]
    entries = "".join(
        f'<Relationship Id="r{n}" Type="http://x/header" Target="{quote(name)}"/>' for n, name in enumerate(names)
    )
    relations = (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{entries}</Relationships>'
    )
    document = extract(build(_BODY, more={"word/_rels/document.xml.rels": relations}), headers_footers=True)
    assert all(warning.isprintable() and len(warning) < 200 for warning in document.warnings)
    assert 2 <= len(document.warnings) <= len(names)


def test_no_content_in_messages() -> None:
    """The name of an unknown root may be content."""
    refusal = _refusal(build(_BODY, more={"word/document.xml": '<Secret xmlns="x"/>'}))
    assert "Secret" not in refusal.message


def test_nested_tables_are_linear() -> None:
    """Beyond some depth, tables within tables are text of the cell they are in: none of it is lost."""
    opened, closed = "<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>"
    body = "".join(f"{opened}<w:p><w:r><w:t>t{n}</w:t></w:r></w:p>" for n in range(3000)) + closed * 3000
    text = extract(build(body)).text
    assert re.findall(r"t(\d+)", text) == [str(n) for n in range(3000)]
