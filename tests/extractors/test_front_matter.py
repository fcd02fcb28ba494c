"""Front matter: what is one, what is in it, and what is refused."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qedge_dagster.extractors.front_matter import MAX_CHARACTERS, read_front_matter
from tests.extractors.support import extract_markdown


@pytest.mark.parametrize(
    ("source", "metadata", "body"),
    [
        ("---\ntitle: Grüße\n---\n# H\n", {"title": "Grüße"}, "# H\n"),
        ("---  \ntitle: dots\n...\t\ntext", {"title": "dots"}, "text"),
        ("---\ntitle: at the end\n---", {"title": "at the end"}, ""),
        ("---\n# comment\n\ntags: [a, 1, 2.5, true, null]\n---\n", {"tags": ["a", 1, 2.5, True, None]}, ""),
        (
            "---\ndate: 2024-01-02\nat: 2024-01-02T03:04:05Z\n---\n",
            {"date": "2024-01-02", "at": "2024-01-02T03:04:05+00:00"},
            "",
        ),
        ("---\n1: a\nfalse: b\n2024-01-02: c\n---\n", {"1": "a", "False": "b", "2024-01-02": "c"}, ""),
        (
            "---\na: !!set {y, x}\nb: !!binary aGk=\nc: .nan\nd: -.inf\n---\n",
            {"a": ["x", "y"], "b": "aGk=", "c": "nan", "d": "-inf"},
            "",
        ),
        ('---\na: "\\ud800"\n---\n', {"a": "?"}, ""),
        (
            "---\nsummary: >-\n  two\n  lines\nnested:\n  - {deep: [1]}\n---\n",
            {"summary": "two lines", "nested": [{"deep": [1]}]},
            "",
        ),
    ],
)
def test_yaml(source: str, metadata: dict[str, object], body: str) -> None:
    """A mapping between fences becomes plain values, and is not part of the text."""
    front = read_front_matter(source)
    assert (front.metadata, source[front.end :], front.warnings) == (metadata, body, ())
    json.dumps(front.metadata, allow_nan=False)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "---",
        "---\n---\n",
        "---\n\nA rule above, and one below.\n\n---\n",
        "---\ntitle: never closed\n\n# H\n",
        "\n---\ntitle: not on the first line\n---\n",
        " ---\ntitle: indented\n---\n",
        "----\ntitle: four dashes\n----\n",
        "--- title: on the fence\n---\n",
        "---\n- a\n- list\n---\n",
        "---\n# only a comment\n---\n",
        "---\nWhat is [this\n---\n",
        "+++\nno key here\n+++\n",
        "+++\nkey = 'never closed'\n",
        '{\n  "title": "JSON"\n}\n',
        "---\nkey: " + "x" * MAX_CHARACTERS + "\n---\n",
    ],
)
def test_not_front_matter(source: str) -> None:
    """Rules, lists, prose, unclosed and oversized blocks stay text."""
    front = read_front_matter(source)
    assert (front.end, front.metadata, front.warnings) == (0, {}, ())


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("title: [unclosed", "malformed at line 3"),
        ("title: a: b", "malformed at line 2"),
        ("a: &x [1]\nb: *x", "aliases"),
        ("a: &x {k: v}\nb: {<<: *x}", "aliases"),
        ("a: " + "[" * 40 + "]" * 40, "nested"),
        ("a: " + "[" * 8000, "nested"),
        ("a: 2024-13-45", "malformed"),
        ("a: " + "1" * 10_000, "malformed"),
        ("a: !!python/object/apply:os.system [ls]", "malformed at line 2"),
        ("a: \x07", "malformed"),
    ],
)
def test_unreadable_yaml(body: str, reason: str) -> None:
    """What is meant as front matter but cannot be taken is a warning that quotes nothing, and no text."""
    source = f"---\n{body}\n---\ntext"
    front = read_front_matter(source)
    assert (front.metadata, source[front.end :], len(front.warnings)) == ({}, "text", 1)
    assert reason in front.warnings[0]
    assert "unclosed" not in front.warnings[0]


def test_toml() -> None:
    """TOML is read where Python can, and is no text anywhere."""
    source = "+++\ntitle = 'T'\ndate = 2024-01-02\nat = 07:32:00\nbad = nan\n[extra]\nn = 1\n+++\ntext"
    front = read_front_matter(source)
    assert source[front.end :] == "text"
    if sys.version_info >= (3, 11):
        expected = {"title": "T", "date": "2024-01-02", "at": "07:32:00", "bad": "nan", "extra": {"n": 1}}
        assert (front.metadata, front.warnings) == (expected, ())
    else:
        assert (front.metadata, len(front.warnings)) == ({}, 1)


def test_malformed_toml() -> None:
    """Malformed TOML is a warning too."""
    source = "+++\ntitle = \n+++\ntext"
    front = read_front_matter(source)
    assert (front.metadata, source[front.end :], len(front.warnings)) == ({}, "text", 1)


@given(st.text("ab:-[]{}&*!#'\"\\|>? \n\t0", max_size=60))
def test_any_front_matter(body: str) -> None:
    """Whatever stands between fences, the result can be stored as JSON and nothing is raised."""
    front = read_front_matter(f"---\n{body}\n---\n")
    json.dumps(front.metadata, allow_nan=False)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_front_matter_of_a_document(encoding: str, line_end: str) -> None:
    """Neither a BOM nor line ends hide it; the encoding is metadata as well."""
    source = "---\ntitle: Grüße\n---\n# Überschrift\n".replace("\n", line_end)
    for normalize in (True, False):
        document = extract_markdown(source.encode(encoding), normalize=normalize)
        assert document.metadata["title"] == "Grüße"
        assert [document.text[block.start : block.end] for block in document.blocks] == ["Überschrift"]


def test_encoding_is_ours() -> None:
    """A key of the same name in the front matter does not hide the encoding that was used."""
    assert extract_markdown("---\nencoding: latin-1\n---\n").metadata == {"encoding": "utf-8"}
