"""Budgets, overflow and documents that no one would write."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from qedge_dagster.chunking import ChunkBudget, ChunkingOptions
from qedge_dagster.chunking.drafting import check_drafts
from qedge_dagster.documents import DocumentBlock
from qedge_dagster.embedding.profiles import PROFILES
from qedge_dagster.errors import QedgeError
from tests.chunking.support import (
    CHUNKERS,
    TOKENIZERS,
    assert_promises,
    budget,
    chunk,
    chunker,
    document,
    paragraph,
    uncovered,
    wordpiece,
)

_LONG = paragraph(random.Random(3), 700)


@pytest.mark.parametrize(
    ("profile", "numbers"),
    [("all-minilm-l6-v2-int8", (222, 32, 27)), ("bge-small-en-v1.5", (478, 64, 59))],
)
def test_budgets_of_known_models(profile: str, numbers: tuple[int, int, int]) -> None:
    """Tokens, overlap and minimum, as integer arithmetic gives them."""
    limits = ChunkBudget.resolve(ChunkingOptions(), PROFILES[profile], wordpiece())
    assert (limits.max_tokens, limits.overlap, limits.min_tokens) == numbers


def test_a_document_prefix_is_reserved() -> None:
    """The encoder will add it to every text."""
    profile = PROFILES["nomic-embed-text-v1.5-int8"]
    limits = ChunkBudget.resolve(ChunkingOptions(), profile, wordpiece())
    prefix = wordpiece().count("search_document: ")
    assert limits.max_tokens == 512 - 2 - 32 - prefix
    assert limits.reserved == 2 + prefix


def test_a_budget_that_does_not_fit_shows_the_sum() -> None:
    """6003 names each part."""
    with pytest.raises(QedgeError, match="256 - 2 special - 32 heading path - 0 prefix = 222") as raised:
        budget(wordpiece(), max_tokens=None, heading_path_token_budget=32, min_tokens=222)
    assert raised.value.code == 6003


def test_overflow_throw_refuses_a_long_paragraph() -> None:
    """6152 with the counts, and no word of the text."""
    with pytest.raises(QedgeError) as raised:
        chunk("plain", document(f"Short.\n\n{_LONG}"), overflow="throw")
    assert raised.value.code == 6152
    assert not set(_LONG.split()[:5]) & set(str(raised.value).split())


def test_overflow_truncate_keeps_the_beginning_and_warns() -> None:
    """What fits of a long paragraph stays, ended at a sentence; what stands around it stays whole."""
    warnings: list[str] = []
    drafts = chunker("plain", overflow="truncate").chunk(document(f"Before.\n\n{_LONG}\n\nAfter."), warnings.append)
    text = "".join(draft.text for draft in drafts)
    assert len(warnings) == 1
    assert str(wordpiece().count(_LONG)) in warnings[0]
    assert "Before." in text
    assert "After." in text
    assert sum(draft.token_count for draft in drafts) <= 222 + 4
    assert _LONG[:200] in text


def test_overflow_split_neither_warns_nor_loses() -> None:
    """The default."""
    source = document(f"Before.\n\n{_LONG}")
    assert uncovered(source, chunk("plain", source)) == []


def test_pieces_of_one_paragraph_overlap_and_whole_paragraphs_do_not() -> None:
    """In `plain`: repeated text is for what was cut apart."""
    source = document("\n\n".join([*(paragraph(random.Random(n), 90) for n in range(6)), _LONG]))
    drafts = chunk("plain", source)
    start = source.text.index(_LONG)
    for before, after in pairwise(drafts):
        if after.char_start > start:
            assert after.char_start < before.char_end
        else:
            assert after.char_start > before.char_end


def test_a_sentence_ends_a_piece_where_there_is_one() -> None:
    """A long paragraph is cut between sentences, not after `Dr.`, `e.g.` or a number in a list."""
    text = " ".join(
        f"Dr. Stone saw part {n}. It was, e.g. in winter, as wet as No. 7 in J. Field's house!" for n in range(60)
    )
    drafts = chunk("plain", document(text))
    assert len(drafts) > 3
    assert all(
        draft.text.endswith(("!", f"part {draft.text.split()[-1]}")) and draft.text[-1] in ".!" for draft in drafts
    )
    assert all(draft.text.startswith(("Dr. Stone", "It was")) for draft in drafts)


def test_the_character_cap_holds_where_tokens_say_nothing() -> None:
    """WordPiece gives a run of letters one token, however long: it is cut all the same."""
    source = document("x" * 100_000)
    drafts = chunk("plain", source)
    assert max(len(draft.text) for draft in drafts) <= 2220
    assert uncovered(source, drafts) == []


def test_an_edit_in_a_blob_costs_few_texts() -> None:
    """Cuts inside of a word depend on the letters around them, too."""
    chance = random.Random(5)
    blob = "".join(chance.choices("ABCDEFGHIJKLMNOPabcdefghijklmnop0123456789+/", k=60_000))
    known = {draft.content_hash for draft in chunk("plain", document(blob))}
    edited = chunk("plain", document(blob[:30_000] + "inserted" + blob[30_000:]))
    assert len({draft.content_hash for draft in edited} - known) <= 4


@pytest.mark.parametrize("name", ["token-window", "plain", "markdown-heading"])
def test_blocks_out_of_place_lose_nothing(name: str) -> None:
    """Overlapping, unordered, empty, outside of the text, or none at all: every word is in a chunk."""
    text = f"Alpha beta.\n\n{paragraph(random.Random(4), 300)}\n\nOmega."
    blocks = [
        DocumentBlock("paragraph", 5, 900),
        DocumentBlock("code", 2, 40),
        DocumentBlock("quote", -7, 3),
        DocumentBlock("paragraph", 100, 100),
        DocumentBlock("list_item", 1200, 10**9),
        DocumentBlock("heading", 10**6, 10**6 + 5, 1),
    ]
    for source in (document(text), document(text, blocks)):
        limits = budget(wordpiece())
        assert_promises(source, chunk(name, source), limits, wordpiece())


def test_a_lone_surrogate_is_the_extractors_fault() -> None:
    """6102: such text can be neither encoded nor stored."""
    with pytest.raises(QedgeError) as raised:
        chunk("plain", document("roof \ud800 beam"))
    assert raised.value.code == 6102


@pytest.mark.parametrize("text", ["", " \n\t\u00a0\n", "\u2028"])
def test_blank_text_gives_no_chunk(text: str) -> None:
    """Empty or white space only."""
    assert chunk("auto", document(text)) == []


@pytest.mark.parametrize("text", ["7", "...", "\u200b", "---\n\n***"])
def test_signs_alone_are_a_chunk(text: str) -> None:
    """Whatever is not white space is text."""
    [draft] = chunk("plain", document(text))
    assert draft.text == text


def test_a_giant_cluster_is_cut_at_last() -> None:
    """A letter with 20,000 accents is one cluster, over every cap: nothing is lost and the budget holds."""
    source = document("a" + "\u0301" * 20_000)
    drafts = chunk("plain", source)
    assert uncovered(source, drafts) == []
    assert max(len(draft.text) for draft in drafts) <= 2220


def test_faults_of_a_chunker_are_told() -> None:
    """6151 for a chunk over the budget, 6154 for one without text, under every policy."""
    limits = budget(wordpiece())
    [draft] = chunk("plain", document("roof"))
    for tokens, text, code in ((1, "  ", 6154), (limits.max_sequence_length, "roof", 6151)):
        with pytest.raises(QedgeError) as raised:
            check_drafts([replace(draft, text=text)], [tokens], limits)
        assert raised.value.code == code


def test_the_recipe_names_every_number() -> None:
    """Another budget, policy or level is another recipe; auto's names both chunkers and their versions."""
    base = chunker("auto").recipe_fields()
    assert {"markdown-heading", "plain"} <= set(base)
    for options in ({"max_tokens": 200}, {"overlap": 16}, {"overflow": "throw"}, {"split_levels": (1,)}):
        assert chunker("auto", **options).recipe_fields() != base  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CHUNKERS[:3])
def test_a_letter_of_many_tokens(name: str) -> None:
    """The ligature U+FDFA is 18 letters to a tokenizer that decomposes. A piece that turns out over the budget is
    halved, and the next one does not repeat more than the half before it."""
    tokenizer = TOKENIZERS["unigram"]()
    limits = budget(tokenizer, 24)
    source = document("roof\n\n\ufdfaroofか。。。")
    assert_promises(source, chunker(name, limits, tokenizer).chunk(source, pytest.fail), limits, tokenizer)
