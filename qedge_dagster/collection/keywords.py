"""From what a user typed to an FTS5 query in which nothing is an operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import regex

from qedge_dagster.collection.schema import FtsTokenizer

__all__ = ["MAX_TERMS", "match_expression"]

#: Terms of one query beyond this number are left out, the last first: each costs a walk over its postings, and a
#: pasted page of text finds no more with all of its words.
MAX_TERMS = 64

# A phrase costs with its length, too: what is beyond this is cut off, and the beginning is looked for.
_MAX_CHARACTERS = 256

# Marks belong to the word: FTS5 cuts some scripts at them, and then takes the pieces as a phrase.
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}\p{Co}_]+")
_UNSPACED = regex.compile(
    r"[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}"
    r"\p{Script=Myanmar}]"
)
# NUL ends an FTS5 query, and a lone surrogate has no UTF-8.
_UNQUOTABLE = regex.compile(r"[\x00\p{Cs}]")


def match_expression(keywords: str | Sequence[str], tokenizer: FtsTokenizer) -> str | None:
    """The right side of MATCH, or None if nothing is left to look for.

    The words of a text, or the phrases of a list, joined with OR: bm25 weighs a rare word above a common one, so
    a question needs no stop words. Each is an FTS5 string, so operators, quotes, `*`, `:` and parentheses are inert.
    """
    terms = _words(keywords, tokenizer) if isinstance(keywords, str) else _phrases(keywords)
    distinct: dict[str, str] = {}
    for term in terms:
        term = term[:_MAX_CHARACTERS]
        distinct.setdefault(term.casefold(), '"' + term.replace('"', '""') + '"')
        if len(distinct) == MAX_TERMS:
            break
    return " OR ".join(distinct.values()) or None


def _words(text: str, tokenizer: FtsTokenizer) -> Iterator[str]:
    for match in _WORD.finditer(text):
        word: str = match[0]
        if tokenizer != "trigram":
            yield word
        elif _UNSPACED.search(word):
            # No spaces between the words of these scripts, so any three characters may be one.
            yield from (word[start : start + 3] for start in range(len(word) - 2))
        elif len(word) >= 3:  # the index holds no shorter term
            yield word


def _phrases(keywords: Sequence[str]) -> Iterator[str]:
    for keyword in keywords:
        phrase: str = _UNQUOTABLE.sub(" ", keyword).strip()
        if phrase:
            yield phrase
