"""Encrypted, damaged and hostile files, and what is no PDF."""

from __future__ import annotations

import io
import logging
import zlib
from itertools import count

import pytest

from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors import ExtractionContext, PdfExtractor
from qedge_dagster.extractors.pdf.streams import MAX_STREAM_BYTES
from tests.extractors.pdf.builder import build, extract, fixture, pages, pdf_item, source_of, texts
from tests.extractors.pdf.encryption import encrypted

_PAGE = "BT /F1 12 Tf 72 720 Td (Page {}) Tj ET"


def _failure(data: bytes, **options: object) -> QedgeError:
    with pytest.raises(QedgeError) as caught:
        extract(data, **options)
    return caught.value


def test_user_password() -> None:
    """Without the password: 6103, not showing those that were tried. With it, whichever it is of those given: text."""
    data = build(encrypted(source_of("two_columns"), "open", "own"))
    assert _failure(data).code == 6103
    failure = _failure(data, passwords=("secret", "other"))
    assert failure.code == 6103
    assert "secret" not in str(failure)
    for password in ("open", "own"):
        assert "Left column" in extract(data, passwords=("wrong", password)).text


def test_owner_password() -> None:
    """What is encrypted against changes alone opens without a password."""
    assert "Left column" in extract(build(encrypted(source_of("two_columns"), "", "own"))).text


def test_unknown_encryption() -> None:
    """A method that takes no password is told apart from a missing password."""
    source = pages([_PAGE]) + "\n90 0 obj\n<< /Filter /Adobe.PubSec >>\nendobj\ntrailer\n/Encrypt 90 0 R\n"
    failure = _failure(build(source), passwords=("x",))
    assert failure.code == 6103
    assert "method" in failure.message


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"\n \n", "blanks"),
        (b"\xef\xbb\xbf\n<!DOCTYPE html><html><body>404</body></html>", "HTML"),
        (b"PK\x03\x04...", "a ZIP archive"),
        (b"no document of any kind", "does not begin as one"),
        (b"%PDF-1.7\n", "cut off"),
        (b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n", "no page"),
        (build(pages([])), "no page"),
    ],
)
def test_not_a_document(data: bytes, says: str) -> None:
    """Other content, and files without pages: 6104 in words."""
    failure = _failure(data)
    assert failure.code == 6104
    assert says in failure.message


def test_truncated() -> None:
    """Of a file that was cut off, the pages before the cut are read; of its first bytes, none can be made out."""
    data = build(pages([_PAGE.format(number) for number in range(8)]))
    document = extract(data[: data.index(b"20 0 obj")])
    assert document.text.split("\n\n") == [f"Page {number}" for number in range(5)]
    assert _failure(data[:60]).code == 6104


def test_every_cut_has_an_outcome() -> None:
    """Cut off or with a byte changed anywhere: a document or a refusal, never another error."""
    data = fixture("outline")
    for position in range(0, len(data), 7):
        for broken in (data[:position], data[:position] + b"\xff" + data[position + 1 :]):
            try:
                extract(broken).text.encode()
            except QedgeError as error:
                assert error.code in (6103, 6104)  # noqa: PT017 - both outcomes are right


def test_no_table_of_objects() -> None:
    """Without a table, or with one that leads nowhere, the objects are looked for."""
    data = fixture("text")
    broken = data[: data.index(b"xref")], data.replace(b"startxref\n", b"startxref\n9"), b"junk\n" * 9 + data
    for damaged in broken:
        assert "lighthouse" in extract(damaged).text


def _revised(data: bytes, text: str) -> bytes:
    """With another content of the first page, a table of it, and a trailer: as programs save changes."""
    content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
    place = len(data)
    data += f"11 0 obj\n<< /Length {len(content)} >>\nstream\n{content}\nendstream\nendobj\n".encode()
    before = data[data.rindex(b"startxref\n") + 10 :].split()[0].decode()
    table = len(data)
    data += f"xref\n11 1\n{place:010} 00000 n \ntrailer\n<< /Root 1 0 R /Prev {before} >>\n".encode()
    return data + f"startxref\n{table}\n%%EOF\n".encode()


def test_damaged_revision() -> None:
    """Where the last table is not found, the newest definition of each object counts, as with a table."""
    data = _revised(_revised(build(pages([_PAGE.format("old")])), "newer"), "newest")
    assert extract(data).text == "newest"
    place = data.rindex(b"startxref\n") + 10
    for damaged in (data[:place] + b"9" + data[place:], data[: place - 10], data[:20] + b" " + data[20:]):
        assert extract(damaged).text == "newest"


def test_objects_in_streams_are_searched_for() -> None:
    """Without a table, objects are found in streams of objects, and the catalog in that of a table."""
    content = _PAGE.format(1)
    objects = "2 0 3 45 4 106 << /Type /Pages /Count 1 /Kids [3 0 R] >>     "
    objects += "<< /Type /Page /Contents 5 0 R /Resources << /Font << /F1 4 0 R >> >> >>"
    first = objects.index("<<")
    objects += " << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    source = (
        "1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n"
        f"5 0 obj\n<< >>\nstream\n{content}\nendstream\nendobj\n"
        f"6 0 obj\n<< /Type /ObjStm /N 3 /First {first} >>\nstream\n{objects}\nendstream\nendobj\n"
        "7 0 obj\n<< /Type /XRef /Root 1 0 R >>\nstream\n\nendstream\nendobj\n"
    )
    data = build(source)
    assert extract(data[: data.index(b"\nxref\n")]).text == "Page 1"


def test_damaged_stream_of_objects() -> None:
    """The objects before the fault are kept."""
    parts = ["<< /Type /Page /Contents 5 0 R >> ", "<< /Type /Page /Contents 5 0 R >> ", "<< /Odd >> <<"]
    numbers = f"20 0 21 {len(parts[0])} 22 {len(parts[0] + parts[1])} "
    source = (
        "2 0 obj\n<< /Type /Pages /Kids [20 0 R 21 0 R 22 0 R] >>\nendobj\n1 0 obj\n<< /Pages 2 0 R >>\nendobj\n"
        f"5 0 obj\n<< >>\nstream\n{_PAGE.format(1)}\nendstream\nendobj\n"
        f"6 0 obj\n<< /Type /ObjStm /N 3 /First {len(numbers)} >>\nstream\n"
        f"{numbers}{''.join(parts)}\nendstream\nendobj\n"
        "7 0 obj\n<< /Type /XRef /Root 1 0 R >>\nstream\n\nendstream\nendobj\n"
    )
    data = build(source)
    document = extract(data[: data.index(b"\nxref\n")])
    assert document.page_count == 2


def test_deep_page_tree() -> None:
    """Neither depth nor cycles of the page tree matter."""
    source = pages([_PAGE.format(1)])
    deep = "\n".join(
        f"{100 + level} 0 obj\n<< /Type /Pages /Kids [{101 + level} 0 R 2 0 R] >>\nendobj" for level in range(3000)
    )
    source = source.replace("/Pages 2 0 R", "/Pages 100 0 R")
    data = build(f"{source}\n{deep}\n3100 0 obj\n<< /Type /Pages /Kids [100 0 R 2 0 R] >>\nendobj")
    document = extract(data)
    assert (document.page_count, document.text) == (1, "Page 1")


def test_page_without_an_object_of_its_own() -> None:
    """A page that stands in the list of kids itself is one; lists that name themselves end."""
    own = "<< /Type /Page /Contents 11 0 R >>"
    source = pages([_PAGE.format(1), _PAGE.format(2)]).replace("[10 0 R", f"[{own} << /Kids 80 0 R >>")
    document = extract(build(f"{source}\n80 0 obj\n[<< /Kids 80 0 R >> 10 0 R]\nendobj"))
    assert (document.page_count, document.text.split("\n\n")) == (3, ["Page 1", "Page 1", "Page 2"])


def test_page_that_occurs_again() -> None:
    """Each time a page is named it counts, so that those after it have their numbers; its headings are there once."""
    source = pages([_PAGE.format(1), _PAGE.format(2)], more="/Outlines 80 0 R").replace("[10 0 R", "[10 0 R 10 0 R")
    outline = "80 0 obj\n<< /First 81 0 R >>\nendobj\n81 0 obj\n<< /Title (Title) /Dest [10 0 R /Fit] >>\nendobj"
    document = extract(build(f"{source}\n{outline}"))
    assert document.page_count == 3
    assert [(page, text) for _, _, page, text in texts(document)] == [
        (1, "Title"),
        (1, "Page 1"),
        (2, "Page 1"),
        (3, "Page 2"),
    ]
    many = extract(build(pages([_PAGE.format(1)]).replace("[10 0 R", "[" + "10 0 R " * 20_000)), page_budget=0)
    assert many.page_count == 10_001


def test_hostile_objects() -> None:
    """A page with nonsense in place of its parts keeps what was drawn before, and the others are whole."""
    broken = "BT /F1 12 Tf 72 720 Td (Before) Tj ET /F1 /F1 /F1 cm q (x) Tf BT (After) Tj ET"
    source = pages([broken, _PAGE.format(2), _PAGE.format(3)])
    source = source.replace("/Contents 15 0 R", "/Contents 15 0 R /Resources 7 /MediaBox [1 (x)]")
    document = extract(build(source))
    assert "Before" in document.text
    assert "Page 2" in document.text
    assert document.page_count == 3


def test_table_that_claims_too_much() -> None:
    """A table in a stream may claim a thousand million objects, without a page among them."""
    data = (
        b"%PDF-1.5\n1 0 obj\n<< /Type /Catalog >>\nendobj\n2 0 obj\n<< /Type /XRef /Size 9 /Index [0 1000000000] "
        b"/W [1 2 1] /Root 1 0 R /Length 8 >>\nstream\n\0\0\0\0\x01\0\x09\0\nendstream\nendobj\nstartxref\n45\n%%EOF\n"
    )
    assert data[45:].startswith(b"2 0 obj")
    assert _failure(data).code == 6104


def test_bomb() -> None:
    """A stream that would unpack beyond the bound is refused, whatever it is packed by and how often; below it, not."""
    blanks = b" " * (MAX_STREAM_BYTES + 1)
    once = zlib.compress(blanks, 9)
    for packed, filters in ((once, "/FlateDecode"), (zlib.compress(once, 9), "[/FlateDecode /FlateDecode]")):
        source = pages([packed.decode("latin-1")]).replace("<< >>\nstream", f"<< /Filter {filters} >>\nstream")
        failure = _failure(build(source))
        assert failure.code == 6104
        assert "64 MiB" in failure.message
    packed = zlib.compress(_PAGE.format(1).encode())
    source = pages([packed.decode("latin-1")]).replace("<< >>\nstream", "<< /Filter /FlateDecode >>\nstream")
    assert extract(build(source)).text == "Page 1"


def test_page_budget() -> None:
    """A page that takes too long ends the reading: what was read is kept, and the reason names it and how many there
    are. Not so the last page, after which nothing is missing."""
    data = build(pages([_PAGE.format(number) for number in range(1, 6)]))
    seconds = iter([0.0, 1.0, 2.0, 6.0])
    document = extract(data, page_budget=3.0, clock=lambda: next(seconds))
    assert document.incomplete is not None
    assert document.incomplete.code == 6107
    assert document.incomplete.message == "page 3 of 5 took longer than 3 s: those after it were not read"
    assert document.text == "Page 1\n\nPage 2\n\nPage 3"
    assert (document.page_count, document.metadata["page_coverage"]) == (5, 0.6)
    last_slow = iter([0.0, 1.0, 2.0, 3.0, 4.0, 9.0])
    document = extract(data, page_budget=3.0, clock=lambda: next(last_slow))
    assert (document.incomplete, document.metadata["page_coverage"]) == (None, 1.0)


@pytest.mark.parametrize("slow", [1, 2])
def test_page_budget_within_a_page(slow: int) -> None:
    """A page is not read to its end when its time is over: the pages before it are kept."""
    contents = [_PAGE.format(number) for number in range(1, 4)]
    contents[slow - 1] = contents[slow - 1] + " q Q" * 5000
    document = extract(build(pages(contents)), page_budget=3.0, clock=count(0.0, 2.0).__next__)
    assert document.incomplete is not None
    reason = f"page {slow} of 3 takes longer than 3 s: it and those after it were not read"
    assert (document.incomplete.code, document.incomplete.message) == (6107, reason)
    assert document.text == "Page 1" * (slow - 1)
    assert document.page_count == 3


def test_stream_that_cannot_seek() -> None:
    """A source may give a stream that can only be read."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: int) -> int:
            raise io.UnsupportedOperation

    data = fixture("text")
    document = PdfExtractor().extract(pdf_item(data, lambda: Pipe(data)), ExtractionContext())
    assert "lighthouse" in document.text


def test_errors_of_the_stream_pass() -> None:
    """An error of the disk is not blamed on the document."""

    class Failing(io.BytesIO):
        def read(self, *size: int | None) -> bytes:
            if self.tell() > 0:
                raise OSError(5, "input/output error")
            return super().read(*size)

    data = fixture("text") + b"\n" * 5000
    with pytest.raises(OSError, match="input/output"):
        PdfExtractor().extract(pdf_item(data, lambda: Failing(data)), ExtractionContext())


def test_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The library's log, which would have the text of documents, is off."""
    with caplog.at_level(logging.DEBUG):
        extract(fixture("text"))
        extract(fixture("hostile_outline"))
    assert caplog.records == []
