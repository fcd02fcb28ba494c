"""What a user typed becomes an FTS5 query that never fails and has no operators."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qedge_dagster.collection.keywords import MAX_TERMS, match_expression

TOKENIZE = {"unicode61": "unicode61 remove_diacritics 2", "porter": "porter unicode61", "trigram": "trigram"}
TEXTS = {
    1: "C++ is what's up, foo:bar v1.2 in a multi-agent system",
    2: "the roof leaks AND the gutter is full",
    3: "機械学習の方法について",
    4: "हिन्दी में लिखा हुआ पाठ",
    5: "Ünïcödé naïve café",
}


@pytest.fixture(scope="module")
def search():
    """MATCH on a small index, by tokenizer."""
    connection = apsw.Connection(":memory:")
    for name, tokenize in TOKENIZE.items():
        connection.execute(f"CREATE VIRTUAL TABLE {name} USING fts5 (text, tokenize='{tokenize}')")
        connection.executemany(f"INSERT INTO {name} (rowid, text) VALUES (?, ?)", TEXTS.items())

    def run(keywords, tokenizer="unicode61"):
        expression = match_expression(keywords, tokenizer)
        if expression is None:
            return []
        rows = connection.execute(
            f"SELECT rowid FROM {tokenizer} WHERE {tokenizer} MATCH ? ORDER BY rowid", (expression,)
        )
        return [rowid for (rowid,) in rows]

    return run


NASTY = [
    *(
        "",
        " ",
        '"',
        '""',
        "'",
        "*",
        ":",
        "(",
        ")",
        "^",
        "-",
        "+",
        "NEAR",
        "OR",
        "AND",
        "NOT",
        "\0",
        "\ud800",
        "🙂",
        "👨‍👩‍👧",
    ),
    *('text:"', "text : roof", "{text} : roof", "NEAR(a b, 1)", "a OR", "^roof", 'roof"', "--", "/*", "a" * 10_000),
    *("x " * 5_000, "\u0301", "\u200b", "'; DROP TABLE unicode61; --", "a\0b", "roof\ud800leak", "\U0010ffff"),
]


@pytest.mark.parametrize("tokenizer", TOKENIZE)
def test_no_text_raises(search, tokenizer):
    """Texts that break FTS5 queries elsewhere give an answer, as a text and as a phrase."""
    for text in NASTY:
        search(text, tokenizer)
        search([text], tokenizer)
        search([text, "roof"], tokenizer)


@given(text=st.text(st.characters(exclude_categories=())), tokenizer=st.sampled_from(list(TOKENIZE)))
def test_any_text_is_a_valid_query(search, text, tokenizer):
    """Whatever the characters, SQLite takes the expression."""
    search(text, tokenizer)
    search([text, "roof"], tokenizer)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("C++", [1]),
        ("what's up?", [1]),
        ("foo:bar", [1]),
        ("v1.2", [1]),
        ("multi-agent", [1]),
        ("text:roof", [2]),
        ("roof*", [2]),
        ("roo*", []),
        ("NOT roof", [2]),
        ("roof NOT leaks", [2]),
        ("cafe naive", [5]),
        ("", []),
        ('"', []),
        ("🙂", []),
    ],
)
def test_operators_are_inert(search, query, found):
    """Words are found for what they are; `*`, `:`, quotes and the names of operators do nothing."""
    assert search(query) == found


def test_a_list_is_of_phrases(search):
    """The words of one keyword must stand together, any keyword of a list is enough."""
    assert search("gutter leaks roof") == [2]
    assert search(["roof leaks"]) == [2]
    assert search(["leaks roof"]) == []
    assert search(["leaks roof", "foo:bar"]) == [1]


def test_marks_stay_in_their_word(search):
    """A Hindi word is not taken apart at its vowel signs into letters that match anything."""
    assert search("हिन्दी") == [4]
    assert search("दिन्ही") == []


def test_trigram_index_of_unspaced_text(search):
    """Any three characters of a Japanese question may be the word; shorter terms cannot match and are left out."""
    assert search("機械学習とは何ですか", "trigram") == [3]
    assert search("機械", "trigram") == []
    assert match_expression("an up is", "trigram") is None


def test_terms_are_distinct_and_bounded():
    """A word that is repeated counts once, and a pasted book costs no more than its first words."""
    assert match_expression("roof Roof ROOF leak", "unicode61") == '"roof" OR "leak"'
    expression = match_expression(" ".join(f"w{number}" for number in range(10_000)), "unicode61")
    assert expression is not None
    assert expression.count(" OR ") == MAX_TERMS - 1


def test_a_phrase_is_bounded(search):
    """The time that a phrase takes grows with its length: a pasted one is looked for by its beginning."""
    expression = match_expression(["the " * 100_000], "unicode61")
    assert expression is not None
    assert len(expression) < 300
    assert search([TEXTS[2] + " " * 300 + "and so on"]) == [2]
    assert search("x" * 100_000, "trigram") == []
