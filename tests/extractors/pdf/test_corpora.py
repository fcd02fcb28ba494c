"""Real and broken files from outside the repository, where they are at hand, against another reader of PDF."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from pathlib import Path

import pypdfium2
import pytest

from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors import ExtractionContext, PdfExtractor
from tests.extractors.pdf.builder import pdf_item

_CORPUS = Path(__file__).parents[4] / "shared" / "corpora" / "pdf"
_COMPARED = ("text", "twocol", "tables", "ligatures_hyphen", "rtl", "cjk", "xref_stream", "forms_annots")
_BY_LETTERS = ("rtl", "cjk")
_PASSWORDS = ("test", "usersecret", "foo", "S\xaaSL\xadprep")
#: Pages that we leave out, with the reason.
_LEFT_OUT = {
    "rtl__pdf.js_ThuluthFeatures.pdf": "its fonts do not say which letters they show; the other reader gives code "
    "numbers as if they were letters",
}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not _CORPUS.is_dir(), reason="the corpora are not part of the repository"),
]


def _files() -> list[Path]:
    return sorted(_CORPUS.glob("*.pdf"))


def _category(path: Path) -> str:
    return path.name.partition("__")[0]


def _extract(path: Path, extractor: PdfExtractor) -> ExtractedDocument:
    return extractor.extract(pdf_item(b"", lambda: path.open("rb")), ExtractionContext())


def _outcome(path: Path, extractor: PdfExtractor) -> str:
    try:
        document = _extract(path, extractor)
    except QedgeError as error:
        return str(error.code)
    document.text.encode("utf-8")
    ends = [0, *(block.end for block in document.blocks)]
    assert all(end <= block.start < block.end for end, block in zip(ends, document.blocks, strict=False)), path.name
    assert ends[-1] == len(document.text)
    assert document.page_count is not None
    assert all(1 <= block.page <= document.page_count for block in document.blocks), path.name
    pages = [block.page for block in document.blocks]
    assert pages == sorted(pages)
    return "text" if document.has_text_layer else "no text"


def test_every_file_has_an_outcome() -> None:
    """A document or a refusal, in both reading orders the same; whole categories have the outcome of their kind."""
    table: dict[str, Counter[str]] = {}
    for path in _files():
        outcome = _outcome(path, PdfExtractor())
        assert outcome == _outcome(path, PdfExtractor("layout"))
        table.setdefault(_category(path), Counter())[outcome] += 1
    for category, outcomes in sorted(table.items()):
        print(f"{category:28}", ", ".join(f"{outcome}: {count}" for outcome, count in sorted(outcomes.items())))
    assert set(table["scan_notext"]) == {"no text"}
    assert set(table["enc_special"]) == {"6103"}
    assert not any("6103" in outcomes for category, outcomes in table.items() if not category.startswith("enc_"))
    assert not any("6107" in outcomes for outcomes in table.values())
    for category in ("text", "tables", "twocol", "cjk", "xref_stream", "broken_xref"):
        assert set(table[category]) <= {"text", "no text"}, category


def test_passwords() -> None:
    """Files with a user password open with it, and not with another."""
    locked = [
        path
        for path in _files()
        if path.name.startswith("enc_user") and _outcome(path, PdfExtractor(passwords=("no",))) == "6103"
    ]
    assert len(locked) == 4
    for path in locked:
        assert _outcome(path, PdfExtractor(passwords=_PASSWORDS)) == "text", path.name


def test_text_of_another_reader_is_found() -> None:
    """At least 97 % of the words (of writing without clear words: letters) that the other reader finds on a page are on
    the same page of ours, and 90 % in each file. The table is printed, with the pages that we leave out."""
    files: Counter[str] = Counter()
    total: Counter[str] = Counter()
    found: Counter[str] = Counter()
    low: list[str] = []
    left_out: list[str] = []
    for path in _files():
        category = _category(path)
        if category not in _COMPARED:
            continue
        document = _extract(path, PdfExtractor())
        theirs = pypdfium2.PdfDocument(path)
        assert document.page_count == len(theirs), path.name
        left_out += [f"{path.name}: {warning}" for warning in document.warnings]
        if path.name in _LEFT_OUT:
            continue
        ours = [""] * len(theirs)
        for block in document.blocks:
            ours[block.page - 1] += document.text[block.start : block.end] + "\n\n"
        of_file = here = 0
        for index, mine in enumerate(ours):
            wanted = _tokens(theirs[index].get_textpage().get_text_range(), category)
            of_file += wanted.total()
            here += (wanted & _tokens(mine, category)).total()
        files[category] += 1
        total[category] += of_file
        found[category] += here
        if here < 0.9 * of_file:
            low.append(f"{path.name}: {here} of {of_file}")
    print(f"\n{'':20}{'files':>6}{'words':>8}{'found':>8}{'share':>9}")
    for category, count in total.items():
        unit = " letters" if category in _BY_LETTERS else ""
        share = found[category] / count
        print(f"{category:20}{files[category]:6}{count:8}{found[category]:8}{share:9.2%}{unit}")
    print(f"{'all':20}{files.total():6}{total.total():8}{found.total():8}{found.total() / total.total():9.2%}")
    print("below 90 %:", "; ".join(low) or "none")
    print("pages left out or read in part:", *left_out, sep="\n  ")
    assert low == []
    for category, count in total.items():
        assert found[category] >= 0.97 * count, category


def test_pages_left_out_are_named() -> None:
    """A page left out is in the warnings, with the reason."""
    for name in _LEFT_OUT:
        document = _extract(_CORPUS / name, PdfExtractor())
        assert not document.has_text_layer
        assert "do not say which letters" in document.warnings[0]


def test_columns_of_real_files() -> None:
    """In a page of poems in two columns, each is whole in the layout order."""
    text = _extract(_CORPUS / "twocol__pdfbox_PDFBOX-3110-poems-beads.pdf", PdfExtractor("layout")).text
    lines = [
        "Wer reitet so sp\xe4t durch Nacht und Wind?\nEs ist der Vater mit seinem Kind;\n",
        "Und wiegen und tanzen und singen dich ein",
        "Mein Sohn, was birgst du so bang dein Gesicht?\n",
        "Es scheinen die alten Weiden so grau",
        "ARGAN, seul dans sa chambre",
    ]
    places = [text.find(line) for line in lines]
    assert -1 not in places
    assert places == sorted(places)


def test_table_of_a_real_file() -> None:
    """The cells of a table stay in their rows in the layout order."""
    text = _extract(_CORPUS / "tables__pdfplumber_senate-expenditures.pdf", PdfExtractor("layout")).text
    assert re.search(r"DHAW20190002 \S+ CITIBANK - TRAVEL CBA CARD", text)


def _tokens(text: str, category: str) -> Counter[str]:
    """Words, or letters and digits; words broken at the end of a line joined, as the other reader marks them."""
    text = unicodedata.normalize("NFKC", text)
    text = re.sub("[-\u2010\u00ad]?[\ufffe\x02]\\s*", "", text)
    text = re.sub("(?<=\\w)[-\u2010]\\s*\n(?=[a-z])", "", text)
    if category in _BY_LETTERS:
        return Counter(filter(str.isalnum, text))
    return Counter(re.findall(r"\w+", text.casefold()))
