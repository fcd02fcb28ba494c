"""`qedge search`: what it finds, how it shows it, and what no query can break."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qedge_dagster.cli.output import cells
from qedge_dagster.cli.search import _snippet
from qedge_dagster.collection.filters import FILTER_COLUMNS
from tests.cli.conftest import Invoke

FIELDS = [
    "score",
    "source_id",
    "document_id",
    "key",
    "ordinal",
    "breadcrumb",
    "text",
    "page",
    "char_start",
    "char_end",
    "block_kind",
    "media_type",
    "vector_rank",
    "keyword_rank",
]


@pytest.fixture
def search(qedge: Invoke, ingested: Path, model: Path) -> Any:  # noqa: ARG001 - the database
    def call(*args: object) -> Any:
        result = qedge("search", "--model", model, "--json", *args)
        assert result.exit_code == 0, result.stderr
        assert result.stderr == ""
        return json.loads(result.stdout)

    return call


def test_json_hits(search: Any) -> None:
    """A hit has the documented fields, and its text is that of the chunk."""
    hits = search("fuel", "tap")
    assert list(hits[0]) == FIELDS
    assert hits[0]["document_id"] == "boats/engine.md"
    assert hits[0]["breadcrumb"] == "Engine"
    assert (hits[0]["source_id"], hits[0]["ordinal"], hits[0]["media_type"]) == ("club", 0, "text/markdown")
    assert "Close the fuel tap" in hits[0]["text"]
    assert (hits[0]["page"], hits[0]["vector_rank"], hits[0]["keyword_rank"]) == (-1, 1, 1)
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


def test_modes(search: Any) -> None:
    """Each mode asks its own lane."""
    assert all(hit["keyword_rank"] is None for hit in search("rope", "--mode", "vector"))
    assert all(hit["vector_rank"] is None for hit in search("rope", "--mode", "keyword"))
    assert [hit["document_id"] for hit in search("rope", "--mode", "keyword")] == ["boats/mooring.md"]


def test_keyword_mode_needs_no_model(qedge: Invoke, ingested: Path) -> None:  # noqa: ARG001
    """Keyword search answers whatever model the collection was built with, and loads none."""
    assert qedge("search", "coffee", "--mode", "keyword").stdout.startswith("  1. ")


def test_the_source_is_shown_where_there_are_several(qedge: Invoke, ingested: Path, model: Path) -> None:  # noqa: ARG001
    """A hit names its source once the collection has more than one."""
    assert "source " not in qedge("search", "coffee", "--mode", "keyword").stdout
    assert qedge("ingest", "docs", "--source-id", "copy", "--model", model).exit_code == 0
    shown = qedge("search", "coffee", "--mode", "keyword").stdout
    assert [line.strip() for line in shown.splitlines() if "source " in line] == ["source club", "source copy"]


def test_help_lists_the_filter_columns(qedge: Invoke) -> None:
    """Every column that a filter may name is in `search --help`."""
    columns = qedge("search", "--help").stdout.partition("Columns of --filter:")[2].replace(",", " ").split()
    assert columns == list(FILTER_COLUMNS)


def test_another_model_is_refused(qedge: Invoke, ingested: Path) -> None:  # noqa: ARG001
    """A vector search with another model than the collection's is 6012."""
    result = qedge("search", "coffee")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("qedge: 6012 ModelChanged: ")


def test_top_and_filters(search: Any) -> None:
    """--top bounds the hits; every --filter must hold."""
    assert len(search("the", "--top", 1)) == 1
    assert {hit["document_id"] for hit in search("the", "--filter", "document_id=boats/*")} == {
        "boats/engine.md",
        "boats/mooring.md",
    }
    assert search("the", "--filter", "document_id=boats/*", "--filter", "media_type=text/plain") == []


def test_keywords(search: Any) -> None:
    """--keywords replaces the words of the question in the keyword lane."""
    hits = search("coffee", "--keywords", "double every rope", "--keywords", "bow")
    assert [hit["keyword_rank"] for hit in hits if hit["document_id"] == "notes.txt"] == [None]
    assert {hit["document_id"] for hit in hits if hit["keyword_rank"]} == {"boats/mooring.md"}


@pytest.mark.parametrize(
    "query",
    [
        "",
        " ",
        "what's up?",
        "C++",
        "foo:bar",
        '"',
        "v1.2",
        "NOT (",
        "*",
        "-x",
        "🚣",
        "x" * 10_000,
        "caf\udce9",
        "a\x00b",
    ],
)
def test_any_query_is_answered(query: str, search: Any) -> None:
    """No string is an error, in any mode."""
    for mode in ("hybrid", "vector", "keyword"):
        assert isinstance(search("--mode", mode, "--", query), list)


def test_human_output(qedge: Invoke, ingested: Path, model: Path) -> None:  # noqa: ARG001
    """Rank, score and document on the first line, then the headings, then the text; nothing wider than the output."""
    result = qedge("search", "double every rope", "--model", model, "--top", 2)
    first, breadcrumb, text = result.stdout.splitlines()[:3]
    assert first.startswith("  1. 1.0000  boats/mooring.md")
    assert breadcrumb == "     Mooring \u203a Storm"
    assert "Double every rope." in result.stdout
    assert text.startswith("     ")
    assert all(cells(line) <= 100 for line in result.stdout.splitlines())


def test_nothing_found(qedge: Invoke, ingested: Path, model: Path) -> None:  # noqa: ARG001
    """No hit is no error: stdout is empty, and [] with --json."""
    args = ["search", "zebra", "--mode", "keyword", "--model", model]
    result = qedge(*args)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "nothing found\n")
    assert qedge(*args, "--json").stdout == "[]\n"


@pytest.mark.parametrize(
    "text",
    [
        "short",
        "word " * 500,
        "x" * 3000,
        "文字列" * 800,
        "\u202e\x1b[2J " * 300,
        "a\u0301" * 2000,
    ],
)
def test_snippets_are_bounded(text: str) -> None:
    """A snippet has at most three lines of at most the width, whatever the text."""
    for width in (35, 95):
        lines = _snippet(text, frozenset({"word"}), width)
        assert 1 <= len(lines) <= 3
        assert all(line.isprintable() and cells(line) <= width for line in lines)


def test_snippet_shows_the_words() -> None:
    """Of a long text, the part that holds most of the query's words is shown."""
    text = "filler text without meaning " * 40 + "the sand filter is changed on Mondays " + "and more filler " * 40
    assert "sand filter is changed" in " ".join(_snippet(text, frozenset({"sand", "filter", "and"}), 80))
