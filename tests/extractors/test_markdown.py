"""Markdown blocks: golden files, invariants over random sources, hostile input."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors import markdown as markdown_module
from tests.extractors.support import extract_markdown

_TESTS = Path(__file__).parent.parent
_FIXTURES = sorted((_TESTS / "fixtures" / "markdown").glob("*.md"))
_pieces = st.sampled_from(
    [
        *(
            "# ",
            "## ",
            "#",
            " #",
            "---",
            "===",
            "***",
            "> ",
            "- ",
            "* ",
            "1. ",
            "2) ",
            "    ",
            "  ",
            "\t",
            "```",
            "~~~",
        ),
        *("| a | b |\n|---|---|\n", "| c |", "|", "<div>", "<!--", "-->", "[a]: b", "\\", "`", "a", "é", "日本", "x y"),
        *("\n", "\n", "\n\n", "\x0b", "\x0c", "\x85", "\u2028", "\u00a0", "\u200b"),
    ]
)
_sources = st.lists(_pieces, max_size=30).map("".join)


def _titles(document: ExtractedDocument) -> list[tuple[int, str]]:
    return [(b.heading_level, document.text[b.start : b.end]) for b in document.blocks if b.kind == "heading"]


def test_there_is_a_golden_file_for_each_fixture() -> None:
    """Neither lies about unused."""
    assert [path.stem for path in _FIXTURES] == sorted(p.stem for p in (_TESTS / "golden" / "markdown").iterdir())


@pytest.mark.parametrize("path", _FIXTURES, ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    """Kinds, levels, offsets and texts of all blocks of a file are as reviewed."""
    document = extract_markdown(path.read_bytes())
    lines = [
        f"{b.kind}{b.heading_level or ''} {b.start}-{b.end} {document.text[b.start : b.end]!r}\n"
        for b in document.blocks
    ]
    assert "".join(lines) == (_TESTS / "golden" / "markdown" / f"{path.stem}.txt").read_text("utf-8")


@given(_sources)
@example("- a\n\n\n1. b\n\n> c\n\n# d #\n\ne\n=\n\n| f |\n|---|\n| g |\n\n    h\n")
def test_blocks_cover_the_text(source: str) -> None:
    """Blocks are in order, apart, never blank, and hold everything that can be seen but the marks of headings."""
    document = extract_markdown(source)
    text, end = document.text, 0
    gaps: list[str] = []
    for block in document.blocks:
        assert end <= block.start < block.end <= len(text)
        assert text[block.start : block.end].strip()
        assert (block.kind == "heading") == (block.heading_level > 0)
        gaps.append(text[end : block.start])
        end = block.end
    gaps.append(text[end:])
    marks = set("".join(gaps)) - set(" \t\n\x0b\x0c\x85\u2028\u00a0\u200b")
    assert marks <= set("#=-" if any(block.kind == "heading" for block in document.blocks) else "")


@given(_sources)
def test_headings_are_those_of_the_reference_parser(source: str) -> None:
    """The same headings, levels and titles as a full parse finds at the top level."""
    document = extract_markdown(source)
    tokens = MarkdownIt("commonmark", {"maxNesting": 1000}).enable("table").disable("reference").parse(document.text)
    expected = [
        (int(token.tag[1:]), following.content)
        for token, following in pairwise(tokens)
        if token.type == "heading_open"
        and token.level == 0
        and following.content.strip("\u200b\u00a0 \x0b\x0c\x1c\x85\u2028")
    ]
    found = _titles(document)
    assert [(level, _squeezed(title)) for level, title in found] == [(lv, _squeezed(title)) for lv, title in expected]


def _squeezed(title: str) -> str:
    return "".join(title.split())


@given(_sources)
def test_heading_lines_can_be_told(source: str) -> None:
    """A heading has `#` marks before its title, or else an underline below it: what a chunker has to leave out."""
    document = extract_markdown(source)
    for block in document.blocks:
        if block.kind == "heading":
            before = document.text[document.text.rfind("\n", 0, block.start) + 1 : block.start]
            below = document.text[block.end :].partition("\n")[2].partition("\n")[0]
            assert before.strip() == "#" * block.heading_level or set(below.strip()) in ({"="}, {"-"})


@given(_sources)
def test_offsets_without_normalisation(source: str) -> None:
    """With normalisation off, CRLF and CR move offsets but change no block."""
    plain = extract_markdown(source)
    for line_end in ("\r\n", "\r"):
        raw = extract_markdown(source.replace("\n", line_end), normalize=False)
        assert [(b.kind, b.heading_level, raw.text[b.start : b.end].replace(line_end, "\n")) for b in raw.blocks] == [
            (b.kind, b.heading_level, plain.text[b.start : b.end]) for b in plain.blocks
        ]


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_only_line_feeds_break_lines(separator: str) -> None:
    """What `str.splitlines` would also break at moves no offset."""
    document = extract_markdown(f"a{separator}b\n\n# T{separator}itle\n\n# Next\n")
    assert _titles(document) == [(1, f"T{separator}itle"), (1, "Next")]


def test_table_header_holds_its_rule() -> None:
    """The header row of each table is the one block of two lines, so tables that follow each other stay apart."""
    document = extract_markdown("| a |\n|---|\n| 1 |\n\n| b |\n|---|\n| 2 |\n")
    rows = [document.text[b.start : b.end].count("\n") for b in document.blocks if b.kind == "table_row"]
    assert rows == [1, 0, 1, 0]


def test_code_keeps_the_indentation_of_its_first_line() -> None:
    """Code is cut at line starts."""
    document = extract_markdown("text\n\n        deep\n    shallow\n")
    assert document.text[document.blocks[1].start : document.blocks[1].end] == "        deep\n    shallow"


@pytest.mark.parametrize(
    "nested",
    ["- " * 3000 + "deep", "1. " * 3000 + "deep", "> " * 3000 + "deep", "> - " * 2000 + "deep"],
    ids=["bullets", "numbers", "quotes", "mixed"],
)
def test_nothing_is_lost_past_a_nesting_limit(nested: str) -> None:
    """However deep the nesting, what follows it is still found."""
    document = extract_markdown(f"# Before\n\n{nested}\n\n# After\n\nend")
    assert _titles(document) == [(1, "Before"), (1, "After")]
    assert len(document.blocks) == 4


def test_deep_list_by_indentation() -> None:
    """A list nested a hundred deep is one item, and the heading after it is one."""
    source = "".join("  " * depth + f"- item {depth}\n" for depth in range(100)) + "\n# After\n"
    document = extract_markdown(source)
    assert [block.kind for block in document.blocks] == ["list_item", "heading"]


def _hostile(n: int) -> dict[str, str]:
    return {
        "brackets": "[" * n,
        "stars": "*a " * n,
        "backticks": "`" * n + " " + "`" * (n - 1),
        "lazy quote": ">" * 500 + "a\n" + "lazy\n" * (n // 10),
        "lazy list": "- " * 500 + "a\n" + "lazy\n" * (n // 10),
        "table columns": "|a" * n + "|\n" + "|-" * n + "|\n" + "|b" * n + "|\n",
        "table of short rows": "|" + "a|" * 300 + "\n|" + "-|" * 300 + "\n" + "|1|\n" * (n // 10),
        "one line": "word " * n,
        "html attributes": "<a " + "b=c " * n,
        "html spaces": "<a" + " " * n,
        "closing marks": "# a " + "#" * n,
        "escaped pipes": "a|" + "\\|" * n + "\n-|-\n",
        "comments": "<!-- \n" * (n // 10),
        "definitions": "[a]: b\n" * (n // 10),
    }


@pytest.mark.parametrize("name", _hostile(1))
def test_hostile_input(name: str) -> None:
    """Input that is slow or deep for other parsers is taken, and all of it is in some block."""
    document = extract_markdown(_hostile(50_000)[name])
    assert document.blocks[0].start == 0 or document.blocks[0].kind == "heading"
    assert document.blocks[-1].end >= len(document.text.rstrip().rstrip("#").rstrip())


def test_work_grows_with_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the input is four times the calls of rules, not sixteen, for what nests, interrupts and continues."""

    def calls(source: str) -> int:
        count = 0

        def counting(*args: object) -> bool:
            nonlocal count
            count += 1
            return original(*args)  # type: ignore[arg-type]

        original = markdown_module.list_block
        with monkeypatch.context() as patch:
            patch.setattr(markdown_module, "list_block", counting)
            extract_markdown(source)
        return count

    for piece in ("- a\n", "> a\n", "a\nb\n\n", "- a\n  - b\n", "a|b\n", "|a|\n|-|\n", "- > a\n", "1. a\n\n   b\n"):
        assert calls(piece * 400) <= 4 * calls(piece * 100) + 40


def test_parser_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the parser fails the document with the line, and quotes nothing."""

    def failing(*_: object) -> bool:
        raise IndexError("secret")

    monkeypatch.setattr(markdown_module, "list_block", failing)
    with pytest.raises(QedgeError) as caught:
        extract_markdown("> ok\n\n- secret\n")
    assert (caught.value.code, caught.value.message) == (6155, "line 3: IndexError")
