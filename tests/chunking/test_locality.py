"""What an edit costs: counted in texts that were not there before."""

from __future__ import annotations

import random
from collections.abc import Callable
from statistics import mean, median

import pytest

from qedge_dagster.chunking import ChunkDraft
from tests.chunking.support import budget, chunker, document, markdown, paragraph, wordpiece

_LENGTHS: dict[str, Callable[[random.Random], int]] = {
    "20 to 140": lambda chance: chance.randint(20, 140),
    "mostly short": lambda chance: chance.randint(5, 40),
    "60 to 110": lambda chance: chance.randint(60, 110),
    "mostly long": lambda chance: chance.randint(120, 140) if chance.random() < 0.8 else chance.randint(20, 60),
}


class _Book:
    """500 paragraphs, as a text of its own or as one Markdown section."""

    def __init__(self, name: str, lengths: str, seed: int) -> None:
        self.chance = random.Random(seed)
        self.length = _LENGTHS[lengths]
        self.paragraphs = [self.fresh() for _ in range(500)]
        self.in_section = name == "markdown-heading"
        self.chunker = chunker(name, budget(wordpiece()))

    def fresh(self) -> str:
        return paragraph(self.chance, self.length(self.chance))

    def chunks(self, paragraphs: list[str]) -> list[ChunkDraft]:
        text = "\n\n".join(paragraphs)
        source = markdown(f"# Title\n\n{text}\n") if self.in_section else document(text)
        return self.chunker.chunk(source, pytest.fail)

    def edit_paragraph(self) -> list[str]:
        edited, position = list(self.paragraphs), self.chance.randrange(500)
        match self.chance.choice(["insert", "delete", "rewrite"]):
            case "insert":
                edited.insert(position, self.fresh())
            case "delete":
                del edited[position]
            case _:
                edited[position] = self.fresh()
        return edited

    def edit_word(self) -> list[str]:
        edited, position = list(self.paragraphs), self.chance.randrange(500)
        words = edited[position].split()
        words[self.chance.randrange(len(words))] = "changed"
        edited[position] = " ".join(words)
        return edited


def _costs(book: _Book, edit: Callable[[_Book], list[str]], times: int) -> list[int]:
    known = {draft.content_hash for draft in book.chunks(book.paragraphs)}
    return [len({d.content_hash for d in book.chunks(edit(book))} - known) for _ in range(times)]


def _check(name: str, lengths: str, edit: Callable[[_Book], list[str]], times: int) -> None:
    book = _Book(name, lengths, seed=1)
    fill = mean(draft.token_count for draft in book.chunks(book.paragraphs)) / 222
    costs = _costs(book, edit, times)
    print(f"{name}, {lengths}: median {median(costs)}, maximum {max(costs)}, fill {fill:.1%}")
    assert median(costs) <= 2
    assert max(costs) <= 4
    assert fill >= 0.65


_EDITS = [_Book.edit_paragraph, _Book.edit_word]


@pytest.mark.parametrize("edit", _EDITS)
@pytest.mark.parametrize("name", ["plain", "markdown-heading"])
def test_an_edit_costs_few_texts(name: str, edit: Callable[[_Book], list[str]]) -> None:
    """Median at most 2, maximum 4, and chunks are filled to 65 % or more."""
    _check(name, "20 to 140", edit, 8)


@pytest.mark.long
@pytest.mark.parametrize("edit", _EDITS)
@pytest.mark.parametrize("lengths", _LENGTHS)
@pytest.mark.parametrize("name", ["plain", "markdown-heading", "token-window"])
def test_two_hundred_edits_cost_few_texts(name: str, lengths: str, edit: Callable[[_Book], list[str]]) -> None:
    """The same for paragraphs of all lengths."""
    _check(name, lengths, edit, 200)


def test_a_long_paragraph_costs_its_own_chunks_and_three() -> None:
    """An inserted paragraph of 2,000 words changes at most three chunks besides those it fills."""
    book = _Book("plain", "20 to 140", seed=2)
    known = {draft.content_hash for draft in book.chunks(book.paragraphs)}
    own = paragraph(book.chance, 2000)
    drafts = book.chunks([*book.paragraphs[:250], own, *book.paragraphs[250:]])
    new = [draft for draft in drafts if draft.content_hash not in known]
    assert len([draft for draft in new if draft.text not in own]) <= 3


def test_repeated_lines_stay_few_texts() -> None:
    """Text that repeats itself has no cut that is first: it is filled all the same, with few different texts."""
    drafts = chunker("plain").chunk(document("\n\n".join(["the same line again"] * 5000)), pytest.fail)
    assert mean(draft.token_count for draft in drafts) >= 0.65 * 222
    assert len({draft.content_hash for draft in drafts}) <= 4
