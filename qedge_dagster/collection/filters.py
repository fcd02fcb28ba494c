"""Conditions on the stored columns of a chunk, as SQL with bound values.

    Equal("media_type", "text/markdown") & Prefix("document_id", "guide/") & Range("page", 3, 7)

A filter becomes a WHERE clause over the chunk table. Columns come from a fixed set and values are always parameters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from qedge_dagster.collection.chunk import INTEGER_COLUMNS
from qedge_dagster.errors import QedgeError

__all__ = ["FILTER_COLUMNS", "All", "Equal", "Filter", "In", "Prefix", "Range", "Value"]

Value: TypeAlias = str | int

FILTER_COLUMNS = (
    "source_id",
    "document_id",
    "heading_path",
    "page",
    "block_kind",
    "extractor_id",
    "media_type",
    "ordinal",
    "token_count",
    "created_utc",
    "key",
)

# SQLite's parser takes an expression 1,000 levels deep; nobody writes a hundred conditions by hand.
_MAX_CONDITIONS = 100


class Filter:
    """Base of all conditions; `&` joins them."""

    __slots__ = ()

    def sql(self) -> tuple[str, tuple[Value, ...]]:
        """A boolean expression over the chunk table, and the values of its `?` in order."""
        raise NotImplementedError

    def __and__(self, other: Filter) -> All:
        return All((*_parts(self), *_parts(other)))

    @staticmethod
    def parse(*texts: str) -> Filter:
        r"""The text form, as the command line takes it; several texts must all hold.

        `document_id=notes/a.md` is equality, `document_id=a.md,b.md` one of several, `document_id=notes/*` a prefix,
        and `page=3..7`, `page=3..`, `page=..7` a range with both ends, of an integer column or `created_utc`. After a
        backslash `,`, `*`, `.` and `\` are ordinary characters. Raises `QedgeError` 6005.
        """
        return _parse(texts[0]) if len(texts) == 1 else All(tuple(_parse(text) for text in texts))


@dataclass(frozen=True, slots=True)
class Equal(Filter):
    column: str
    value: Value

    def __post_init__(self) -> None:
        _check(self.column, self.value)

    def sql(self) -> tuple[str, tuple[Value, ...]]:
        return f"{self.column} = ?", (self.value,)


@dataclass(frozen=True, slots=True)
class In(Filter):
    """One of `values`, of which there may be thousands; none matches nothing."""

    column: str
    values: tuple[Value, ...]

    def __init__(self, column: str, values: Iterable[Value]) -> None:
        if isinstance(values, str):
            raise QedgeError(6005, f"filter on {column}: values must be a list of values, not one string")
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "values", tuple(values))
        _check(self.column, *self.values)

    def sql(self) -> tuple[str, tuple[Value, ...]]:
        # One parameter however many values: SQLite bounds the number of parameters.
        return f"{self.column} IN (SELECT value FROM json_each(?))", (json.dumps(self.values, ensure_ascii=False),)


@dataclass(frozen=True, slots=True)
class Range(Filter):
    """From `low` to `high`, both included; None leaves that end open. Text is compared by code points."""

    column: str
    low: Value | None = None
    high: Value | None = None

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise QedgeError(6005, f"filter on {self.column}: a range needs one end at least")
        _check(self.column, *(value for value in (self.low, self.high) if value is not None))

    def sql(self) -> tuple[str, tuple[Value, ...]]:
        ends = [(">=", self.low), ("<=", self.high)]
        given = [(operator, value) for operator, value in ends if value is not None]
        return (
            " AND ".join(f"{self.column} {operator} ?" for operator, _ in given),
            tuple(value for _, value in given),
        )


@dataclass(frozen=True, slots=True)
class Prefix(Filter):
    """Text that starts with `prefix`, letter for letter."""

    column: str
    prefix: str

    def __post_init__(self) -> None:
        if self.column in INTEGER_COLUMNS:
            raise QedgeError(6005, f"filter on {self.column}: a prefix needs a text column")
        _check(self.column, self.prefix)

    def sql(self) -> tuple[str, tuple[Value, ...]]:
        # Two comparisons, which an index serves, instead of LIKE: that one has wildcards and ignores case.
        above = _first_text_above(self.prefix)
        if above is None:
            return f"{self.column} >= ?", (self.prefix,)
        return f"{self.column} >= ? AND {self.column} < ?", (self.prefix, above)


@dataclass(frozen=True, slots=True)
class All(Filter):
    """Every one of `filters`; none of them lets everything through."""

    filters: tuple[Filter, ...]

    def __post_init__(self) -> None:
        if len(self.filters) > _MAX_CONDITIONS:
            raise QedgeError(6005, f"a filter takes at most {_MAX_CONDITIONS} conditions; use In for many values")

    def sql(self) -> tuple[str, tuple[Value, ...]]:
        clauses = [filter_.sql() for filter_ in self.filters]
        text = " AND ".join(f"({clause})" for clause, _ in clauses) or "TRUE"
        return text, tuple(value for _, values in clauses for value in values)


def _parts(filter_: Filter) -> tuple[Filter, ...]:
    return filter_.filters if isinstance(filter_, All) else (filter_,)


def _check(column: str, *values: Value) -> None:
    if column not in FILTER_COLUMNS:
        raise QedgeError(6005, f"no filter on {column!r}; the columns are {', '.join(FILTER_COLUMNS)}")
    wanted = int if column in INTEGER_COLUMNS else str
    for value in values:
        # Of another type, SQLite would convert the value, or find it different from everything.
        if type(value) is not wanted:
            raise QedgeError(6005, f"filter on {column}: {wanted.__name__} values only, not {type(value).__name__}")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise QedgeError(6005, f"filter on {column}: {value} is beyond 64 bits")
        if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
            raise QedgeError(6005, f"filter on {column}: the value is not valid Unicode")


def _first_text_above(prefix: str) -> str | None:
    """The least text that is above everything that starts with `prefix`; None if there is none."""
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    if following == 0xD800:
        following = 0xE000  # surrogates are no characters
    return kept[:-1] + chr(following)


def _parse(text: str) -> Filter:
    column, found, value = text.partition("=")
    column = column.strip()
    if not found:
        raise QedgeError(6005, f"filter {text!r}: write it as column=value, for example document_id=notes/*")
    # An escaped character is an item of two characters, so only a bare one equals its own sign below.
    items = re.findall(r"\\?.", value, re.DOTALL)
    if "\\" in items:
        raise QedgeError(6005, f"filter {text!r}: nothing follows the last backslash")
    if column in INTEGER_COLUMNS or column == "created_utc":
        for position in range(len(items) - 1):
            if items[position] == items[position + 1] == ".":
                low, high = _plain(items[:position]), _plain(items[position + 2 :])
                return Range(column, _typed(column, low) if low else None, _typed(column, high) if high else None)
    if "*" in items:
        if items.index("*") < len(items) - 1 or "," in items:
            raise QedgeError(6005, rf"filter {text!r}: one * and only at the end; \* and \, are the characters")
        return Prefix(column, _plain(items[:-1]))
    alternatives: list[list[str]] = [[]]
    for item in items:
        if item == ",":
            alternatives.append([])
        else:
            alternatives[-1].append(item)
    values = [_typed(column, _plain(alternative)) for alternative in alternatives]
    return Equal(column, values[0]) if len(values) == 1 else In(column, values)


def _plain(items: Iterable[str]) -> str:
    return "".join(item[-1] for item in items)


def _typed(column: str, value: str) -> Value:
    if column not in INTEGER_COLUMNS:
        return value
    try:
        return int(value)
    except ValueError:
        raise QedgeError(6005, f"filter on {column}: {value!r} is not a whole number") from None
