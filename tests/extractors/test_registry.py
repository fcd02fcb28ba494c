"""Which extractor takes an item."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qedge_dagster.documents import media_type_for
from qedge_dagster.errors import CATALOGUE, QedgeError
from qedge_dagster.extractors import (
    ExtractorRegistry,
    MarkdownExtractor,
    TextExtractor,
    default_extractors,
    fingerprint,
)
from tests.extractors.support import item


@pytest.mark.parametrize(
    ("name", "media_type", "extractor"),
    [
        ("a.txt", "text/plain", "text"),
        ("a.csv", "text/csv", "text"),
        ("a.LOG", "application/octet-stream", "text"),
        ("a.md", "text/markdown; charset=utf-8", "markdown"),
        ("a.txt", "text/markdown", "markdown"),
        ("blob", "TEXT/PLAIN", "text"),
        ("a.DOCX", "application/octet-stream", "docx"),
        ("a.docm", "application/octet-stream", "docx"),
        ("a.dotx", "application/octet-stream", "docx"),
        ("a.dotm", "application/octet-stream", "docx"),
        ("blob", media_type_for(".docx"), "docx"),
        ("blob", media_type_for(".docm"), "docx"),
        ("blob", media_type_for(".dotx"), "docx"),
        ("blob", media_type_for(".dotm"), "docx"),
    ],
)
def test_resolution(name: str, media_type: str, extractor: str) -> None:
    """The media type counts first, then the extension; neither is case-sensitive."""
    assert ExtractorRegistry(default_extractors()).resolve(item(b"", name, media_type)).id == extractor


@pytest.mark.parametrize(
    ("name", "media_type", "named"),
    [
        ("a.pdf", media_type_for(".pdf"), "qedge-dagster[pdf]"),
        ("blob", "application/pdf", "qedge-dagster[pdf]"),
        ("a.docx", "application/octet-stream", "qedge-dagster[docx]"),
        ("a.docm", media_type_for(".docm"), "qedge-dagster[docx]"),
        ("a.dotx", media_type_for(".dotx"), "qedge-dagster[docx]"),
        ("a.dotm", media_type_for(".dotm"), "qedge-dagster[docx]"),
        ("a.xyz", "application/octet-stream", ".xyz"),
        ("Makefile", "application/octet-stream", "without extension"),
    ],
)
def test_unsupported(name: str, media_type: str, named: str) -> None:
    """The message says what is missing; for PDF and DOCX it names the extra to install."""
    with pytest.raises(QedgeError) as caught:
        ExtractorRegistry([TextExtractor(), MarkdownExtractor()]).resolve(item(b"", name, media_type))
    assert caught.value.code == 6101
    assert named in caught.value.message
    assert caught.value.remedy == CATALOGUE[6101].remedy  # as `qedge status` has it, which knows the message alone


@pytest.mark.parametrize(("library", "extractor"), [("pdfminer", "pdf"), ("docx2txt", "docx")])
def test_built_in_extractors(library: str, extractor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A format is read where its library is installed; where it is not, the command that installs it is named."""
    every = {"text", "markdown", "pdf", "docx"}
    assert {one.id for one in default_extractors()} == every
    monkeypatch.setattr("qedge_dagster.extractors.find_spec", lambda name: None if name == library else object())
    left = default_extractors()
    assert {one.id for one in left} == every - {extractor}
    with pytest.raises(QedgeError) as caught:
        ExtractorRegistry(left).resolve(item(b"", f"a.{extractor}", "application/octet-stream"))
    assert f'pip install "qedge-dagster[{extractor}]"' in caught.value.message


def test_variant_is_part_of_the_fingerprint() -> None:
    """An option that changes the output changes the recipe."""
    assert [fingerprint(TextExtractor()), fingerprint(MarkdownExtractor(strict_utf8=True))] == [
        "text:1",
        "markdown:1+strict-utf8",
    ]


def test_every_option_of_docx_is_in_the_recipe() -> None:
    """Each changes the fingerprint in its own way, by the argument that it has among the built-in extractors."""
    options: list[dict[str, Any]] = [
        {},
        {"docx_notes": False},
        {"docx_text_boxes": False},
        {"docx_headers_footers": True},
        {"docx_hidden_text": True},
    ]
    found = [fingerprint(one) for given in options for one in default_extractors(**given) if one.id == "docx"]
    assert len(set(found)) == len(options)


def test_duplicate_id() -> None:
    """Two extractors with one id are refused."""
    with pytest.raises(QedgeError) as caught:
        ExtractorRegistry([TextExtractor(), TextExtractor(strict_utf8=True)])
    assert caught.value.code == 6004


@given(st.text(alphabet="aB./é ", max_size=12))
def test_the_suffix_is_that_of_a_path(document_id: str) -> None:
    """The extension of an id is what `pathlib` calls the suffix of the last part."""
    name = document_id[document_id.rfind("/") + 1 :]
    expected = PurePosixPath(name).suffix.lower() if name not in ("", ".") else ""
    text = type("Everything", (TextExtractor,), {"extensions": frozenset({expected})})()
    assert ExtractorRegistry([text]).resolve(item(b"", document_id, "application/octet-stream")) is text
