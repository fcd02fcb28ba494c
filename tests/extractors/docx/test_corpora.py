"""Real and broken files from outside the repository, where they are at hand, against docx2txt."""

from __future__ import annotations

import re
import unicodedata
import zipfile
from collections import Counter
from pathlib import Path

import docx2txt.docx2txt
import pytest

from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors import DocxExtractor, ExtractionContext
from qedge_dagster.sources import SourceItem

_CORPUS = Path(__file__).parents[4] / "shared" / "corpora" / "docx"
_WORD = re.compile(r"\w+")

#: Words of docx2txt that ours has not, by file, and why.
_ABSENT = {
    "alt_content__docx4j_textbox_alternates_contrived": ({"v", "textbox"}, "the other alternative of a text box"),
    "hidden_text__open-xml-powertools_HC019-Hidden-Run": (
        {"When", "click", "Online", "paste", "in", "embed", "code"},
        "hidden",
    ),
    "ruby__poi_61470": ({"とうきょう東京"}, "two words there: 東京(とうきょう)"),
    "soft_nobreak_hyphen__open-xml-powertools_CA013-Lots-of-Stuff": ({"Nobreak"}, "ours has the hyphen: No-break"),
    "textbox__open-xml-powertools_WC047-Two-Text-Box-Mod": (
        {"Textbox1aText1"},
        "a text box and the text around it, run together",
    ),
    "tracked_del__poi_Tika-792": ({"b"}, "moved away, and deleted where it went"),
    "tracked_ins__tika_testWORD_missing_ooxml_bean1": ({"b"}, "moved away, and deleted where it went"),
    "tracked_move__open-xml-powertools_RA001-Tracked-Revisions-02": ({"injectio"}, "the old place of a move"),
    "tracked_move__tika_testWORD_features": (
        {"sociosquad", "litoratorquent", "inceptos", "This", "is", "hidden", "text"},
        "hidden, or the old place of a move run together with what is around it",
    ),
}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not _CORPUS.is_dir(), reason="the corpora are not part of the repository"),
]


def _files() -> list[Path]:
    return sorted(_CORPUS.iterdir())


def _extract(path: Path) -> ExtractedDocument:
    return DocxExtractor().extract(SourceItem(path.name, "x", lambda: path.open("rb")), ExtractionContext())


def _outcome(path: Path) -> str:
    try:
        document = _extract(path)
    except QedgeError as error:
        return str(error.code)
    document.text.encode("utf-8")
    end = 0
    for block in document.blocks:
        assert not document.text[end : block.start].strip(), path.name
        assert end <= block.start < block.end, path.name
        end = block.end
    assert end == len(document.text)
    return "text" if document.text else "empty" if document.has_text_layer else "6105"


def test_every_file_has_an_outcome() -> None:
    """A document or a refusal; whole categories have the outcome of their kind."""
    table: dict[str, Counter[str]] = {}
    for path in _files():
        table.setdefault(path.name.partition("__")[0], Counter())[_outcome(path)] += 1
    for category, outcomes in sorted(table.items()):
        print(f"{category:28}", ", ".join(f"{outcome}: {count}" for outcome, count in sorted(outcomes.items())))
    assert set(table["encrypted_ole"]) == {"6103"}
    assert set(table["strict"]) == {"text"}
    refused = {category for category, outcomes in table.items() if "6104" in outcomes}
    # One "renamed main part" is a theme that was renamed to .docx.
    assert refused == {"corrupt", "hostile", "renamed_main_part"}


def test_words_of_docx2txt_are_found() -> None:
    """Each word that it finds in the body is found, except where it takes for text what is none."""
    words = found = 0
    for path in _files():
        theirs = _by_docx2txt(path)
        if theirs is None or _outcome(path) not in ("text", "empty"):
            continue
        ours = set(_WORD.findall(_extract(path).text))
        absent = {word for word in theirs if word not in ours}
        known, reason = _ABSENT.get(path.stem, (set[str](), ""))
        if absent:
            print(f"{path.name}: without {', '.join(sorted(absent))}: {reason}")
        assert absent == known, path.name
        words += theirs.total()
        found += sum(count for word, count in theirs.items() if word in ours)
    print(f"{found} of {words} words")


def test_what_docx2txt_has_not() -> None:
    """Strict files and renamed main parts, which give it nothing; notes, which it never has."""
    for category in ("strict", "renamed_main_part"):
        for path in _files():
            if path.name.startswith(category) and _outcome(path) == "text":
                assert not _by_docx2txt(path)
    for path in _files():
        if path.name.startswith(("footnotes", "endnotes__mammoth")):
            theirs = _by_docx2txt(path)
            assert theirs is not None
            assert Counter(_WORD.findall(_extract(path).text)) - theirs, path.name


def _by_docx2txt(path: Path) -> Counter[str] | None:
    """The words of the body."""
    try:
        with zipfile.ZipFile(path) as file:
            text = docx2txt.docx2txt.xml2text(file.read("word/document.xml"))
    except Exception:
        return None
    return Counter(_WORD.findall(unicodedata.normalize("NFC", text)))
