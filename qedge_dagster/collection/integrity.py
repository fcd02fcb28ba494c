"""Whether the parts of a collection agree with one another, row for row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import apsw
import numpy as np

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.schema import CollectionSpec
from qedge_dagster.collection.snapshot import collection_snapshot, read_errors

__all__ = ["check_integrity"]


def check_integrity(database: Database, name: str) -> list[str]:
    """Problems, one line each; none if the collection is sound. Reads all of it.

    On a writer's connection FTS5 also compares its index with the text, for which it takes the write lock: SQLite's
    own check does not see an index that is out of step. A reader's connection compares row ids only.
    """
    problems = list(_file(database.connection))
    if problems:  # nothing else that is read from such a file means anything
        return problems
    with collection_snapshot(database, name) as spec:
        problems += _rows(database.connection, name)
        problems += _vectors(database.connection, spec)
    if not database.connection.readonly("main"):
        problems += _full_text(database, name)
    return problems


def _full_text(database: Database, name: str) -> Iterator[str]:
    with read_errors(database.path):
        try:
            with database.atomic():
                database.connection.execute(f"INSERT INTO {name}_fts ({name}_fts, rank) VALUES ('integrity-check', 1)")
        except apsw.CorruptError:
            yield f"the full-text index is out of step with the text ({name}_fts 'rebuild' mends it)"


def _file(connection: apsw.Connection) -> Iterator[str]:
    try:
        for (line,) in connection.execute("PRAGMA integrity_check(20)"):
            if line != "ok":
                yield f"SQLite: {line}"
    except apsw.CorruptError as error:  # what it could not even walk over
        yield f"SQLite: {error}"


_ROW_CHECKS = {
    "chunks without a vector": "SELECT _rowid FROM {name} EXCEPT SELECT rowid FROM {name}_vec_rowids",
    "vectors without a chunk": "SELECT rowid FROM {name}_vec_rowids EXCEPT SELECT _rowid FROM {name}",
    "chunks without a full-text entry": "SELECT _rowid FROM {name} EXCEPT SELECT id FROM {name}_fts_docsize",
    "full-text entries without a chunk": "SELECT id FROM {name}_fts_docsize EXCEPT SELECT _rowid FROM {name}",
    "keys that occur twice": "SELECT key FROM {name} GROUP BY key HAVING count(*) > 1",
    "documents whose ordinals are not 0, 1, 2 and so on": (
        "SELECT 1 FROM {name} GROUP BY source_id, document_id"
        " HAVING min(ordinal) <> 0 OR max(ordinal) <> count(*) - 1 OR count(DISTINCT ordinal) <> count(*)"
    ),
    "documents with another number of chunks than their state says": (
        "SELECT 1 FROM qedge_ingest_document AS d WHERE collection = '{name}' AND chunk_count <>"
        " (SELECT count(*) FROM {name} AS c WHERE c.source_id = d.source_id AND c.document_id = d.document_id)"
    ),
    "documents with chunks but without a state": (
        "SELECT source_id, document_id FROM {name}"
        " EXCEPT SELECT source_id, document_id FROM qedge_ingest_document WHERE collection = '{name}'"
    ),
}


def _rows(connection: apsw.Connection, name: str) -> Iterator[str]:
    for what, query in _ROW_CHECKS.items():
        count = connection.execute(f"SELECT count(*) FROM ({query.format(name=name)})").get
        if count:
            yield f"{count} {what}"


def _vectors(connection: apsw.Connection, spec: CollectionSpec) -> Iterator[str]:
    """vec0 keeps rows in blocks (a bit per slot in use, the slots' row ids, the vectors) and for each row id its slot.
    A zero or non-finite vector makes it misplace other rows, so those are problems too."""
    bad = 0
    in_blocks = [np.empty((0, 3), dtype=np.int64)]
    for block, validity, rowids, vectors in connection.execute(
        f"SELECT chunk_id, validity, c.rowids, v.vectors FROM {spec.name}_vec_chunks AS c"
        f" JOIN {spec.name}_vec_vector_chunks00 AS v ON v.rowid = c.chunk_id ORDER BY chunk_id"
    ):
        used = np.flatnonzero(np.unpackbits(np.frombuffer(validity, dtype=np.uint8), bitorder="little"))
        ids = np.frombuffer(rowids, dtype=np.int64)[used]
        floats = np.frombuffer(vectors, dtype=np.float32).reshape(-1, spec.dimensions)[used]
        bad += int(np.count_nonzero(~np.isfinite(floats).all(axis=1) | ~floats.any(axis=1)))
        in_blocks.append(np.column_stack((np.full_like(ids, block), used, ids)))
    slots = connection.execute(
        f"SELECT chunk_id, chunk_offset, rowid FROM {spec.name}_vec_rowids ORDER BY chunk_id, chunk_offset"
    )
    by_row = np.fromiter(chain.from_iterable(slots), dtype=np.int64).reshape(-1, 3)
    if bad:
        yield f"{bad} vectors are zero or not finite"
    if not np.array_equal(by_row, np.concatenate(in_blocks)):
        yield "the vector table does not find its vectors where it keeps them"
