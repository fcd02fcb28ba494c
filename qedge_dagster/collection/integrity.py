"""Whether a collection is sound: the file, its tables row for row, its hashes, vectors, full text and state.

Every check streams, reads one state of the database, and needs no more than a reader's connection: a run that is
writing neither waits for it nor is waited for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

import apsw
import numpy as np

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.findings import Finding
from qedge_dagster.collection.schema import INDEXED, CollectionSpec, full_text_sql, list_collections, trigger_sql
from qedge_dagster.collection.snapshot import collection_snapshot, read_errors
from qedge_dagster.collection.state_integrity import check_state
from qedge_dagster.collection.vector_blocks import VectorBlock, vector_blocks
from qedge_dagster.hashing import chunk_key, content_hash_of_bytes

__all__ = [
    "OnProgress",
    "check_collection",
    "check_integrity",
    "check_pages",
    "damaged_chunks",
    "missing_schema",
    "no_progress",
]

#: Called now and then with what is looked at, how far, and of how much.
OnProgress: TypeAlias = Callable[[str, int, int], None]


def no_progress(_what: str, _done: int, _total: int) -> None:
    """For callers whom nobody watches."""


_EXAMPLES = 5
_LINES_OF_SQLITE = 20


def check_integrity(database: Database, name: str) -> list[Finding]:
    """What is wrong with the file and one collection in it; empty if nothing is. Reads all of it.

    Raises `QedgeError` 6002 if there is no such collection.
    """
    # Nothing else that is read from a damaged file means anything.
    return check_pages(database) or check_collection(database, name)


def check_pages(database: Database, *, quick: bool = False) -> list[Finding]:
    """What SQLite says of the file. `quick` leaves out whether indexes agree with their tables.

    Of full-text indexes and indexes, those of collections can be mended; what is not theirs is told apart.
    """
    connection = database.connection
    pragma = "quick_check" if quick else "integrity_check"
    try:
        lines = list(_sqlite_lines(connection, f"PRAGMA {pragma}({_LINES_OF_SQLITE})"))
        names = list_collections(database) if lines else []
    except apsw.CorruptError as error:  # what it could not even walk over
        return [Finding("file_damaged", detail=str(error))]
    damage: list[str] = []
    indexes: set[str] = set()
    full_text: set[str] = set()
    for line in lines:
        if found := re.fullmatch(r"(?:row \d+ missing from|wrong # of entries in) index (\S+)", line):
            indexes.add(found[1])
        elif (found := re.search(r"\btable \"?(?:main\.)?(\w+)_fts\b", line)) and found[1] in names:
            full_text.add(found[1])
        else:
            damage.append(line)
    if damage:
        return [Finding("file_damaged", detail=line) for line in damage]
    own = indexes & {f"{name}_{column}" for name in names for column in INDEXED}
    findings = [Finding("full_text_damaged", name) for name in sorted(full_text)]
    for kind, which in {"index_damaged": own, "other_index_damaged": indexes - own}.items():
        if which:
            findings.append(Finding(kind, count=len(which), examples=tuple(sorted(which))))
    return findings


def _sqlite_lines(connection: apsw.Connection, pragma: str) -> Iterator[str]:
    """A full-text index that cannot be read ends the whole check, so that it must then be made table by table."""
    try:
        yield from [line for (line,) in connection.execute(pragma) if line != "ok"]
        return
    except (apsw.CorruptError, apsw.SQLError) as error:
        if "fts5" not in str(error):
            raise
    which = pragma.partition("(")[0]
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        quoted = str(table).replace('"', '""')
        try:
            yield from [line for (line,) in connection.execute(f'{which}("{quoted}")') if line != "ok"]
        except (apsw.CorruptError, apsw.SQLError) as error:
            yield f"table {table}: {error}"


def check_collection(
    database: Database, name: str, *, quick: bool = False, on_progress: OnProgress | None = None
) -> list[Finding]:
    """What is wrong with the tables and the state of one collection. `quick` reads neither texts nor vectors.

    Raises `QedgeError` 6002 if there is no such collection, 6204 if its pages cannot be read.
    """
    report = on_progress or no_progress
    with collection_snapshot(database, name) as spec:
        connection = database.connection
        findings = [*_schema(connection, name), *_rows(connection, name), *check_state(connection, spec)]
        if not quick:
            findings += _chunks(connection, name, report)
            findings += _vectors(connection, spec, report)
            if not any(finding.kind.startswith("full_text") for finding in findings):
                findings += _full_text(database, spec, report)
        return findings


# tables


def missing_schema(connection: apsw.Connection, name: str) -> set[str]:
    """Which of `insert`, `delete`, `update` (triggers) and `key` (the unique index) the data table lacks. Only what
    they do counts, not what they are called."""
    triggers = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", (name,))
    present = {
        event
        for (sql,) in triggers
        for event in trigger_sql(name)
        if re.search(rf"AFTER\s+{event}\b", sql, re.IGNORECASE) and f"{name}_fts" in sql
    }
    unique = connection.execute(
        'SELECT 1 FROM pragma_index_list(?) AS l WHERE l."unique" AND l.partial = 0'
        " AND (SELECT group_concat(name) FROM pragma_index_info(l.name)) = 'key'",
        (name,),
    ).get
    return {*trigger_sql(name)} - present | (set() if unique else {"key"})


def _schema(connection: apsw.Connection, name: str) -> Iterator[Finding]:
    missing = missing_schema(connection, name)
    if missing:
        yield Finding("triggers_missing", name, len(missing), examples=tuple(sorted(missing)))


# Each gives one row for every thing that is wrong.
_ROW_CHECKS = {
    "vectors_missing": "SELECT _rowid FROM {name} EXCEPT SELECT rowid FROM {name}_vec_rowids",
    "vectors_orphaned": "SELECT rowid FROM {name}_vec_rowids EXCEPT SELECT _rowid FROM {name}",
    "full_text_missing": "SELECT _rowid FROM {name} EXCEPT SELECT id FROM {name}_fts_docsize",
    "full_text_orphaned": "SELECT id FROM {name}_fts_docsize EXCEPT SELECT _rowid FROM {name}",
}

_ORDINALS = (
    "SELECT document_id FROM {name} GROUP BY source_id, document_id"
    " HAVING min(ordinal) <> 0 OR max(ordinal) <> count(*) - 1 OR count(DISTINCT ordinal) <> count(*)"
)


def _rows(connection: apsw.Connection, name: str) -> Iterator[Finding]:
    for kind, query in _ROW_CHECKS.items():
        count = connection.execute(f"SELECT count(*) FROM ({query.format(name=name)})").get
        if count:
            yield Finding(kind, name, count)
    count = 0
    examples: list[str] = []
    for (document_id,) in connection.execute(_ORDINALS.format(name=name)):
        count += 1
        if len(examples) < _EXAMPLES:
            examples.append(document_id)
    if count:
        yield Finding("ordinals_wrong", name, count, examples=tuple(examples))


def _chunks(connection: apsw.Connection, name: str, report: OnProgress) -> Iterator[Finding]:
    total: int = connection.execute(f"SELECT count(*) FROM {name}").get
    done = count = 0
    examples: list[str] = []
    for (_, document_id), rows in groupby(_hashed_rows(connection, name), key=lambda row: row.document):
        document = list(rows)
        damaged = len(_damaged(document))
        count += damaged
        if damaged and len(examples) < _EXAMPLES:
            examples.append(document_id)
        done += len(document)
        report(f"{name}: texts", done, total)
    if count:
        yield Finding("chunks_damaged", name, count, examples=tuple(examples))


@dataclass(frozen=True, slots=True)
class _HashedRow:
    document: tuple[str, str]
    rowid: int
    key: str
    stored_hash: object
    text_hash: bytes


def _hashed_rows(
    connection: apsw.Connection, name: str, document: tuple[str, str] | None = None
) -> Iterator[_HashedRow]:
    """All rows, by source and document, or those of one document."""
    where = "" if document is None else "WHERE source_id = ? AND document_id = ?"
    # As bytes: damaged text may be no UTF-8.
    for source_id, document_id, rowid, key, stored, heading, text in connection.execute(
        "SELECT source_id, document_id, _rowid, key, content_hash, CAST(heading_path AS BLOB), CAST(text AS BLOB)"
        f" FROM {name} {where} ORDER BY source_id, document_id",
        document,
    ):
        # Of `chunking.base.embed_text`, which is what a chunk's hash is made of.
        embedded = (heading + b"\n\n" if heading else b"") + (text or b"")
        yield _HashedRow((source_id, document_id), rowid, key, stored, content_hash_of_bytes(embedded))


def damaged_chunks(connection: apsw.Connection, name: str, source_id: str, document_id: str) -> list[int]:
    """Row ids of a document's chunks whose content hash is not that of their text, or whose key is not made of it."""
    return _damaged(list(_hashed_rows(connection, name, (source_id, document_id))))


def _damaged(document: list[_HashedRow]) -> list[int]:
    equals = Counter(row.text_hash for row in document)
    expected = {
        digest: {chunk_key(*document[0].document, digest, ordinal) for ordinal in range(count)}
        for digest, count in equals.items()
    }
    damaged: list[int] = []
    for row in document:
        if row.stored_hash != row.text_hash or row.key not in expected[row.text_hash]:
            damaged.append(row.rowid)
        expected[row.text_hash].discard(row.key)  # a second one of the same key is one too many
    return damaged


# vectors


def _vectors(connection: apsw.Connection, spec: CollectionSpec, report: OnProgress) -> Iterator[Finding]:
    """vec0 keeps rows in blocks (a bit per slot in use, the slots' row ids, the vectors) and for each row id its slot.
    A zero or non-finite vector makes it misplace other rows, so those are wrong too."""
    total: int = connection.execute(f"SELECT count(*) FROM {spec.name}_vec_rowids").get
    wrong_size = found = used = unusable = 0
    for block in vector_blocks(connection, spec):
        if block.vectors is None:
            wrong_size += 1
            continue
        used += len(block.rowids)
        found += _found(connection, spec.name, block)
        unusable += int(np.count_nonzero(~block.usable()))
        report(f"{spec.name}: vectors", used, total)
    if wrong_size:
        yield Finding("vectors_of_wrong_size", spec.name, wrong_size)
    if unusable:
        yield Finding("vectors_unusable", spec.name, unusable)
    # A slot that is found is one row's, so equal numbers make it one to one.
    if not wrong_size and (found != used or used != total):
        yield Finding("vectors_misplaced", spec.name)


def _found(connection: apsw.Connection, name: str, block: VectorBlock) -> int:
    """How many of the block's rows are looked for in the slot that they are in."""
    rows = connection.execute(
        f"SELECT rowid, chunk_id, chunk_offset FROM {name}_vec_rowids WHERE rowid IN (SELECT value FROM json_each(?))",
        (str(block.rowids.tolist()),),
    ).fetchall()
    slots = {
        (rowid, block.number, slot) for rowid, slot in zip(block.rowids.tolist(), block.slots.tolist(), strict=True)
    }
    return len(slots.intersection(rows))


# full text


@contextmanager
def _copied_index(connection: apsw.Connection, spec: CollectionSpec) -> Generator[str]:
    """A copy of the full-text index in a temporary table, over a view of the same text."""
    name, copy = spec.name, "temp.qedge_doctor_fts"
    connection.execute(f"CREATE TEMP VIEW qedge_doctor_text AS SELECT _rowid, text, heading_path FROM main.{name}")
    try:
        connection.execute(full_text_sql(copy, "qedge_doctor_text", spec.fts_tokenizer))
        try:
            for part in ("data", "idx", "docsize", "config"):
                connection.execute(f"DELETE FROM {copy}_{part}")
                connection.execute(f"INSERT INTO {copy}_{part} SELECT * FROM main.{name}_fts_{part}")
            yield copy
        finally:
            connection.execute(f"DROP TABLE {copy}")
    finally:
        connection.execute("DROP VIEW temp.qedge_doctor_text")


def _full_text(database: Database, spec: CollectionSpec, report: OnProgress) -> Iterator[Finding]:
    """SQLite's own check does not see an index that is out of step with the text; FTS5's does, but it is a write to its
    table, for which it would take the write lock from a run. So it is given a copy of the index."""
    report(f"{spec.name}: full text", 0, 0)
    with read_errors(database.path), _copied_index(database.connection, spec) as copy:
        table = copy.removeprefix("temp.")
        try:
            database.connection.execute(f"INSERT INTO {copy} ({table}, rank) VALUES ('integrity-check', 1)")
        except (apsw.CorruptError, apsw.SQLError):  # the latter where the index does not know its own format
            yield Finding("full_text_stale", spec.name)
