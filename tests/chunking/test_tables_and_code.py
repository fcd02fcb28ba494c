"""Blocks that have a structure of their own."""

from __future__ import annotations

import random

from tests.chunking.support import chunk, markdown, paragraph

_HEADER = "| Name | Place |\n|------|-------|"


def _table(rows: int) -> str:
    chance = random.Random(rows)
    return "\n".join([_HEADER, *(f"| {paragraph(chance, 8)} | {number} |" for number in range(rows))])


def test_a_split_table_repeats_its_header() -> None:
    """Every piece starts with the header and its rule, without a blank line, and holds whole rows."""
    source = markdown(f"# Book\n\nBefore.\n\n{_table(60)}\n\nAfter.\n")
    drafts = chunk("markdown-heading", source)
    pieces = [draft for draft in drafts if draft.kind == "table_row"]
    assert len(pieces) > 3
    for draft in pieces:
        assert draft.text.startswith(_HEADER + "\n|")
        assert source.text[draft.char_end - 1 : draft.char_end + 1] in ("|\n", "|", ".\n", ".")
        assert draft.text == f"{_HEADER}\n{source.text[draft.char_start : draft.char_end]}"
    rows = "\n".join(draft.text for draft in drafts)
    assert all(rows.count(f"| {number} |") == 1 for number in range(60))


def test_a_table_that_fits_stays_whole() -> None:
    """It is cut only where it is over the budget by itself."""
    body = "\n\n".join(paragraph(random.Random(seed), 100) for seed in range(6))
    drafts = chunk("markdown-heading", markdown(f"# Book\n\n{body}\n\n{_table(9)}\n\n{body}\n"))
    assert any(_table(9) in draft.text for draft in drafts)


def test_a_header_over_half_of_the_budget_is_not_repeated() -> None:
    """There would be no room for the rows."""
    wide = "| " + " | ".join(paragraph(random.Random(1), 130).replace(".", "").split()) + " |"
    rule = "|" + "---|" * 130
    drafts = chunk("plain", markdown("\n".join([wide, rule, *(["| a " * 130 + "|"] * 4)])))
    assert sum(wide[:40] in draft.text for draft in drafts) == 1


def test_two_tables_have_two_headers() -> None:
    """A table after another one repeats its own header."""
    second = _table(40).replace("Name", "Other")
    drafts = chunk("plain", markdown(f"{_table(41)}\n\n{second}\n"))
    assert all(
        ("| 39 |" in d.text and "Place" in d.text) or not d.text.startswith("| Other") or "Name" not in d.text
        for d in drafts
    )
    assert any(draft.text.startswith("| Other") for draft in drafts[-2:])


def test_code_that_fits_is_not_cut() -> None:
    """A fence within the budget stays whole, and nothing repeats its end."""
    fence = "```\n" + "\n".join(f"let value{number} = {number};" for number in range(15)) + "\n```"
    body = [paragraph(random.Random(seed), 100) for seed in range(8)]
    drafts = chunk("markdown-heading", markdown("\n\n".join(["# Book", *body[:4], fence, *body[4:]])))
    assert sum(fence in draft.text for draft in drafts) == 1
    assert sum("value14 " in draft.text for draft in drafts) == 1


def test_long_code_is_cut_between_lines() -> None:
    """Lines of code, not its full stops, are where it may be cut."""
    fence = "```\n" + "\n".join(f"call one. two(value{number}); // first. second" for number in range(60)) + "\n```"
    source = markdown(f"{fence}\n")
    for draft in chunk("plain", source)[1:]:
        assert source.text[draft.char_start - 1] == "\n"


def test_the_kind_is_that_of_the_first_own_block() -> None:
    """What a chunk repeats of the one before does not count."""
    items = "\n".join(f"- {paragraph(random.Random(seed), 40)}" for seed in range(12))
    drafts = chunk("markdown-heading", markdown(f"# Book\n\n{paragraph(random.Random(1), 200)}\n\n{items}\n"))
    assert {draft.kind for draft in drafts} == {"paragraph", "list_item"}
    assert drafts[-1].kind == "list_item"
