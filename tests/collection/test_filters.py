"""Filters as SQL against their meaning in Python, and as text."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qedge_dagster.collection import Collection, Equal, Filter, In, Prefix, Range
from qedge_dagster.collection.chunk import INTEGER_COLUMNS
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.filters import FILTER_COLUMNS, All
from qedge_dagster.errors import QedgeError
from tests.collection.support import HashEmbedder, build, row

EDGES = [
    "",
    "a",
    "A",
    "ab",
    "a%",
    "a_",
    "a%b",
    "ä",
    "\ud7ff",
    "\ue000",
    "\U0010ffff",
    "a\U0010ffff",
    "'",
    "\\",
    "a,b",
    "a\0b",
]
NUMBERS = st.integers(-2, 6)
NAMES = st.one_of(st.sampled_from(EDGES), st.text("ab%_\U0010ffff", max_size=4))
TEXT_COLUMNS = ("document_id", "heading_path", "media_type")


def conditions() -> st.SearchStrategy[Filter]:
    text, number = st.sampled_from(TEXT_COLUMNS), st.sampled_from(("page", "ordinal", "token_count"))
    return st.one_of(
        st.builds(Equal, text, NAMES),
        st.builds(Equal, number, NUMBERS),
        st.builds(In, text, st.lists(NAMES, max_size=4)),
        st.builds(In, number, st.lists(NUMBERS, max_size=4)),
        st.builds(Range, text, NAMES, st.none() | NAMES),
        st.builds(Range, number, st.none() | NUMBERS, NUMBERS),
        st.builds(Prefix, text, NAMES),
    )


FILTERS = st.lists(conditions(), min_size=1, max_size=3).map(lambda parts: All(tuple(parts)))


def holds(filter_: Filter, columns: dict) -> bool:
    """The meaning of a filter, without SQL."""
    match filter_:
        case Equal(column, value):
            return columns[column] == value
        case In(column, values):
            return columns[column] in values
        case Range(column, low, high):
            return (low is None or low <= columns[column]) and (high is None or columns[column] <= high)
        case Prefix(column, prefix):
            return columns[column].startswith(prefix)
        case All(filters):
            return all(holds(part, columns) for part in filters)
    raise AssertionError(filter_)


@pytest.fixture(scope="module")
def rows():
    return [
        row(
            f"roof {number % 7} {'leak ' * (number % 4)}",
            document_id=EDGES[number % len(EDGES)],
            ordinal=number % 5,
            page=number % 7 - 1,
            heading_path=EDGES[(number * 5) % len(EDGES)],
            media_type=EDGES[(number * 7) % len(EDGES)],
            key=f"{number:03}",
        )
        for number in range(150)
    ]


@pytest.fixture(scope="module")
def collection(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("filters") / "c.db"
    build(path, rows)
    with Collection.open(path, embedder=HashEmbedder()) as collection:
        yield collection


@given(filter_=FILTERS)
def test_both_lanes_see_exactly_what_the_filter_means(collection, rows, filter_):
    """Vector and keyword search return the rows that pass and no others, all of them where there is room."""
    expected = sorted(columns["key"] for columns in rows if holds(filter_, columns))
    for hits in (
        collection.search("roof", top=200, filter=filter_),
        collection.keyword_search("roof", top=200, filter=filter_),
        collection.hybrid_search("roof", top=200, filter=filter_),
    ):
        assert sorted(hit.chunk.key for hit in hits) == expected


def test_a_filter_works_before_the_search_not_after(collection):
    """The best of those that pass are found although everything else is nearer."""
    everything = collection.search("roof", top=150)
    last = everything[-1].chunk.key
    (hit,) = collection.search("roof", top=1, filter=Equal("key", last))
    assert (hit.chunk.key, hit.vector_rank) == (last, 1)
    ranked = [hit.chunk.key for hit in everything if hit.chunk.page == 3]
    assert [hit.chunk.key for hit in collection.search("roof", top=5, filter=Equal("page", 3))] == ranked[:5]


def plan(collection: Collection, search) -> list[str]:
    """The query plans of the statements that `search` runs."""
    statements: list[tuple] = []

    def record(_cursor, sql, bindings):
        statements.append((sql, bindings))
        return True

    connection = collection._database.connection
    connection.exec_trace = record
    try:
        search()
    finally:
        connection.exec_trace = None
    return [
        detail
        for sql, bindings in statements
        if sql.startswith("SELECT")
        for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)
    ]


def test_match_runs_once_however_many_rows_pass(collection):
    """The full-text index is asked for the words alone: a row id among its constraints would mean once per row."""
    wanted = Prefix("document_id", "a") & In("page", range(5))
    lines = plan(collection, lambda: collection.keyword_search("roof leak", filter=wanted))
    assert {line for line in lines if "chunks_fts" in line} == {"SCAN chunks_fts VIRTUAL TABLE INDEX 0:M2"}


def test_vec0_takes_the_row_ids(collection):
    """The filter's row ids are a constraint of the vector table itself."""
    wanted = Prefix("document_id", "a")
    filtered = plan(collection, lambda: collection.search("roof", filter=wanted))
    open_ = plan(collection, lambda: collection.search("roof"))
    (with_ids,), (without,) = (
        {line.rpartition(":")[2] for line in lines if "chunks_vec VIRTUAL TABLE" in line} for lines in (filtered, open_)
    )
    assert with_ids.startswith(without)
    assert len(with_ids) > len(without)


def test_prefix_and_in_use_the_index(collection):
    """A filter on the document does not read the whole table."""
    for wanted in (Prefix("document_id", "a"), In("document_id", ["a", "b"]), Equal("document_id", "a")):
        lines = plan(collection, lambda wanted=wanted: collection.keyword_search("roof", filter=wanted))
        assert any("USING COVERING INDEX chunks_document_id" in line for line in lines), lines


def test_in_takes_thousands_of_values(collection, rows):
    """More values than SQLite takes parameters."""
    values = [f"{number:03}" for number in range(40_000)]
    assert len(collection.keyword_search("roof", top=200, filter=In("key", values))) == len(rows)


def test_values_are_never_sql(collection, rows):
    """A value that looks like SQL is compared, not run."""
    hostile = "x' OR 1=1; DROP TABLE chunks; --"
    for wanted in (
        Equal("key", hostile),
        Prefix("key", hostile),
        In("key", [hostile]),
        Range("key", "~", hostile + "~"),
    ):
        assert collection.keyword_search("roof", filter=wanted) == []
    assert collection.chunk_count() == len(rows)


def test_an_empty_conjunction_lets_everything_through(collection, rows):
    """No condition is no filter."""
    assert len(collection.search("roof", top=200, filter=Filter.parse())) == len(rows)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Equal("text", "x"),
        lambda: Equal("_rowid", 1),
        lambda: Equal("1=1 OR key", "x"),
        lambda: Equal("page", "3"),
        lambda: Equal("page", True),
        lambda: Equal("page", 2**63),
        lambda: Equal("document_id", 3),
        lambda: Equal("document_id", None),
        lambda: Equal("document_id", "\udcff"),
        lambda: In("document_id", "abc"),
        lambda: In("page", [1, "2"]),
        lambda: In("page", [1, None]),
        lambda: Range("page"),
        lambda: Range("page", "1", "2"),
        lambda: Prefix("page", "1"),
        lambda: All(tuple(Equal("page", 1) for _ in range(101))),
    ],
)
def test_what_cannot_be_meant_is_refused(make):
    """Unknown columns, values of another type or beyond 64 bits, and ranges without an end are 6005."""
    with pytest.raises(QedgeError) as caught:
        make()
    assert caught.value.code == 6005


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("document_id=notes/a.md", Equal("document_id", "notes/a.md")),
        ("document_id = notes", Equal("document_id", " notes")),
        ("document_id=a..b.md", Equal("document_id", "a..b.md")),
        ("document_id=notes/*", Prefix("document_id", "notes/")),
        ("document_id=*", Prefix("document_id", "")),
        ("document_id=a.md,b.md", In("document_id", ["a.md", "b.md"])),
        (r"document_id=a\,b.md", Equal("document_id", "a,b.md")),
        (r"document_id=what\*", Equal("document_id", "what*")),
        (r"document_id=a\\b", Equal("document_id", "a\\b")),
        ("document_id=x=y", Equal("document_id", "x=y")),
        ("document_id=", Equal("document_id", "")),
        ("page=3", Equal("page", 3)),
        ("page=3,5", In("page", [3, 5])),
        ("page=3..7", Range("page", 3, 7)),
        ("page=3..", Range("page", 3)),
        ("page=..7", Range("page", None, 7)),
        ("page=-1", Equal("page", -1)),
        ("created_utc=2024-05*", Prefix("created_utc", "2024-05")),
        ("created_utc=2024-05..2024-07", Range("created_utc", "2024-05", "2024-07")),
        (r"created_utc=2024\..05", Equal("created_utc", "2024..05")),
    ],
)
def test_the_text_form(text, expected):
    """What the command line takes, as the filters of the API."""
    assert Filter.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "document_id", "=x", "title=x", "page=", "page=x", "page=1..x", "page=..", "page=1*", "page=1.5"),
        *("document_id=*.md", "document_id=a*b", "document_id=a*,b", "document_id=a\\", "page=1,,2"),
    ],
)
def test_the_text_form_refuses_what_it_does_not_mean(text):
    """A glob in the middle, a missing number or column: 6005, never another filter than was meant."""
    with pytest.raises(QedgeError) as caught:
        Filter.parse(text)
    assert caught.value.code == 6005


@given(column=st.sampled_from(FILTER_COLUMNS), value=st.text(st.characters(exclude_categories=["Cs"])))
def test_an_escaped_value_is_that_value(column, value):
    """With every special character escaped, any text can be asked for."""
    if column in INTEGER_COLUMNS:
        return
    escaped = "".join("\\" + character if character in ",*.\\" else character for character in value)
    assert Filter.parse(f"{column}={escaped}") == Equal(column, value)


def test_several_texts_must_all_hold():
    """Each `--filter` narrows the search."""
    assert Filter.parse("page=1", "key=x") == Equal("page", 1) & Equal("key", "x")
    assert (Equal("page", 1) & Equal("key", "x")) & Prefix("key", "x") == All(
        (Equal("page", 1), Equal("key", "x"), Prefix("key", "x"))
    )


def test_a_null_column_passes_no_filter(tmp_path, rows):
    """A row that another program left without a value is not found by a filter on it, and found without."""
    build(tmp_path / "c.db", rows[:3])
    with closing(Database(tmp_path / "c.db")) as database:
        database.connection.execute("UPDATE chunks SET page = NULL WHERE key = '001'")
    with Collection.open(tmp_path / "c.db", embedder=HashEmbedder()) as collection:
        assert {hit.chunk.key for hit in collection.search("roof", filter=Range("page", -9, 99))} == {"000", "002"}
        assert len(collection.search("roof")) == 3
