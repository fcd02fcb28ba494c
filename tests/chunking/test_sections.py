"""Chunking by heading: what goes to the path, what stays, and what belongs together."""

from __future__ import annotations

import random
from itertools import pairwise

from qedge_dagster.chunking import ChunkDraft
from qedge_dagster.documents import DocumentBlock, ExtractedDocument
from tests.chunking.support import chunk, markdown, paragraph, uncovered

_LONG = paragraph(random.Random(1), 60)
_OTHER = paragraph(random.Random(2), 60)


def _pairs(drafts: list[ChunkDraft]) -> list[tuple[str, str]]:
    return [(draft.breadcrumb, draft.text) for draft in drafts]


def _by_heading(text: str, **options: object) -> list[ChunkDraft]:
    return chunk("markdown-heading", markdown(text), **options)


def test_a_splitting_heading_leaves_the_body() -> None:
    """Title, marks and underline are in the path and not in the text; text before the first heading has no path."""
    drafts = _by_heading(f"Before.\n\nBook\n====\n\n{_LONG}\n\n## Part ##\n\n{_OTHER}\n")
    assert _pairs(drafts) == [("", "Before."), ("Book", _LONG), ("Book \u203a Part", _OTHER)]
    assert drafts[2].embed_text == f"Book \u203a Part\n\n{_OTHER}"


def test_a_deep_heading_stays_in_its_section() -> None:
    """H4 and below are text, and no part of the path."""
    [draft] = _by_heading(f"# Book\n\n{_LONG}\n\n#### Detail\n\n{_OTHER}\n")
    assert (draft.heading_path, draft.text) == (("Book",), f"{_LONG}\n\n#### Detail\n\n{_OTHER}")


def test_levels_to_split_at_are_a_choice() -> None:
    """With `split_levels` of 2 alone, H1 is text and H3 too."""
    drafts = _by_heading(f"# Book\n\n{_LONG}\n\n## Part\n\n### Detail\n\n{_OTHER}\n", split_levels=(2,))
    assert _pairs(drafts) == [("", f"# Book\n\n{_LONG}"), ("Part", f"### Detail\n\n{_OTHER}")]


def test_a_heading_closes_those_of_its_level_and_below() -> None:
    """The path is the open headings, also where a level is left out."""
    drafts = _by_heading(f"# A\n\n### B\n\n{_LONG}\n\n## C\n\n{_LONG}\n\n# D\n\n{_OTHER}\n")
    assert [draft.heading_path for draft in drafts] == [("A", "B"), ("A", "C"), ("D",)]


def test_short_siblings_are_one_verbatim_slice() -> None:
    """They stand under the path of their parent, with their heading lines as text."""
    drafts = _by_heading("# Words\n\n## Roof\n\nIt covers.\n\n## Beam\n\nIt bears.\n\n## Wall\n\nIt stands.\n")
    assert _pairs(drafts) == [("Words", "## Roof\n\nIt covers.\n\n## Beam\n\nIt bears.\n\n## Wall\n\nIt stands.")]


def test_a_short_section_joins_the_longer_sibling_after_it() -> None:
    """As the verbatim slice of both, if the two fit the budget."""
    drafts = _by_heading(f"# Book\n\n## Short\n\nLittle.\n\n## Long\n\n{_LONG}\n")
    assert _pairs(drafts) == [("Book", f"## Short\n\nLittle.\n\n## Long\n\n{_LONG}")]


def test_a_short_section_stays_alone_where_the_next_is_no_sibling() -> None:
    """A short text above a subheading keeps its own heading."""
    drafts = _by_heading(f"# Book\n\nLittle.\n\n## Part\n\n{_LONG}\n")
    assert _pairs(drafts) == [("Book", "Little."), ("Book \u203a Part", _LONG)]


def test_a_heading_with_nothing_under_it_is_text() -> None:
    """It would be in no path, so it could not be found; one with a subheading is in that one's path."""
    drafts = _by_heading(f"# Book\n\n## Part\n\n### Detail\n\n{_LONG}\n\n# Empty\n")
    assert _pairs(drafts) == [("Book \u203a Part \u203a Detail", _LONG), ("", "# Empty")]


def test_only_headings_are_not_lost() -> None:
    """A document of nothing but headings gives them as text or path."""
    source = markdown("# A\n\n## B\n\n## C\n\n# D\n")
    drafts = chunk("markdown-heading", source)
    assert uncovered(source, drafts) == []
    assert drafts


def test_every_piece_of_a_long_section_has_its_path_and_repeats_the_end_of_the_last() -> None:
    """An over-budget section goes to the token window."""
    body = "\n\n".join(paragraph(random.Random(seed), 90) for seed in range(12))
    drafts = _by_heading(f"# Book\n\n## Part\n\n{body}\n")
    assert len(drafts) > 4
    assert {draft.heading_path for draft in drafts} == {("Book", "Part")}
    assert all(after.char_start < before.char_end for before, after in pairwise(drafts))


def test_a_title_alone_is_a_heading_where_a_format_has_no_marks() -> None:
    """DOCX and PDF give titles without marks: their lines leave the body just so, and a run-in text stays."""
    text = f"Report 2024\n\n{_LONG}\n\nResults and more text on the same line\n\n{_OTHER}"
    second = text.index("Results")
    blocks = (
        DocumentBlock("heading", 0, 11, 1, 1),
        DocumentBlock("paragraph", 13, 13 + len(_LONG), 0, 1),
        DocumentBlock("heading", second, second + 7, 2, 2),
        DocumentBlock("paragraph", text.index(_OTHER), len(text), 0, 2),
    )
    drafts = chunk("auto", ExtractedDocument("d", "docx", 1, "x", text, blocks))
    assert _pairs(drafts) == [
        ("Report 2024", _LONG),
        ("Report 2024 \u203a Results", f"and more text on the same line\n\n{_OTHER}"),
    ]
    assert [draft.page for draft in drafts] == [1, 2]


def test_auto_goes_by_the_headings() -> None:
    """With a heading it is chunked by heading, without one plainly."""
    assert chunk("auto", markdown(f"# A\n\n{_LONG}")) == chunk("markdown-heading", markdown(f"# A\n\n{_LONG}"))
    assert chunk("auto", markdown(_LONG)) == chunk("plain", markdown(_LONG))


def test_a_heading_stays_with_what_follows_it() -> None:
    """No cut falls between a heading and its first paragraph while there is another place."""
    parts = [f"#### Detail {number}\n\n{paragraph(random.Random(number), 70)}" for number in range(30)]
    drafts = _by_heading("\n\n".join(["# Book", *parts]) + "\n")
    assert len(drafts) > 10
    assert not any(draft.text.rsplit("\n", 1)[-1].startswith("####") for draft in drafts)
