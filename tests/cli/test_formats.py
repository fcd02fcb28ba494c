"""Options of single formats reach their extractor, and a change of one indexes anew."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest

from qedge_dagster.collection import Collection
from tests.cli.conftest import Invoke

_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RUN = "<w:r>{}<w:t>{}</w:t></w:r>"
_PARTS = {
    "_rels/.rels": {"officeDocument": "word/document.xml"},
    "word/_rels/document.xml.rels": {"footnotes": "footnotes.xml", "header": "header1.xml"},
    "word/document.xml": f"<w:document {_WORD}><w:body><w:p>{_RUN.format('', 'body ')}"
    f"{_RUN.format('<w:rPr><w:vanish/></w:rPr>', 'hidden ')}"
    '<w:r><w:footnoteReference w:id="1"/></w:r>'
    f"<w:r><w:pict><w:txbxContent><w:p>{_RUN.format('', 'box')}</w:p></w:txbxContent></w:pict></w:r>"
    "</w:p></w:body></w:document>",
    "word/footnotes.xml": f'<w:footnotes {_WORD}><w:footnote w:id="1"><w:p>{_RUN.format("", "note")}</w:p></w:footnote>'
    "</w:footnotes>",
    "word/header1.xml": f"<w:hdr {_WORD}><w:p>{_RUN.format('', 'header')}</w:p></w:hdr>",
}


def write_word_document(path: Path) -> None:
    """One paragraph, "body", with everything that an option is about; each says what it is."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in _PARTS.items():
            archive.writestr(name, content if isinstance(content, str) else _relations(content))


def _relations(targets: dict[str, str]) -> str:
    items = (
        f'<Relationship Id="r{kind}" Type="{_RELATIONS}/{kind}" Target="{part}"/>' for kind, part in targets.items()
    )
    namespace = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{namespace}">{"".join(items)}</Relationships>'


def words_of(database: Path, document_id: str) -> set[str]:
    with Collection.open(database) as collection:
        texts = [chunk.text for chunk in collection.chunks() if chunk.document_id == document_id]
    return set(re.findall(r"\w+", " ".join(texts)))


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--docx-no-notes", {"body", "box"}),
        ("--docx-no-text-boxes", {"body", "note"}),
        ("--docx-headers-footers", {"body", "note", "box", "header"}),
        ("--docx-hidden-text", {"body", "note", "box", "hidden"}),
    ],
)
def test_what_is_read_of_a_word_document(option: str, words: set[str], qedge: Invoke, docs: Path, model: Path) -> None:
    """Each option changes what is read, and so the recipe: the next run indexes again, or refuses to (6009)."""
    write_word_document(docs / "word.docx")
    command = ("ingest", docs, "--model", model, "--json")
    assert qedge(*command).exit_code == 0
    assert words_of(Path("qedge.db"), "word.docx") == {"body", "note", "box"}
    assert "6009" in qedge(*command, option, "--strict-recipe").stderr
    assert json.loads(qedge(*command, option).stdout)["documents_indexed"] > 0
    assert words_of(Path("qedge.db"), "word.docx") == words
    again = json.loads(qedge(*command, option).stdout)
    assert (again["documents_indexed"], again["texts_embedded"]) == (0, 0)
