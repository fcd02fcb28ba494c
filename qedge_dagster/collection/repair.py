"""Mending a collection from what is in the file; what is not, is given to the next run.

The caller holds the run locks of the collection's sources, and has found something wrong. Everything is looked up anew
inside the transaction, so that nothing is done about what is not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.integrity import damaged_chunks, missing_schema
from qedge_dagster.collection.schema import (
    INDEXED,
    CollectionSpec,
    key_index_sql,
    read_spec,
    trigger_sql,
    vector_table_sql,
)
from qedge_dagster.collection.state_integrity import STATE_CHECKS, damaged_notes, leftover_sources, unusable_staged
from qedge_dagster.collection.vector_blocks import vector_blocks
from qedge_dagster.collection.writer import CollectionWriter, VectorsMissing

__all__ = ["mend_collection", "rebuild_indexes"]


def rebuild_indexes(database: Database, names: list[str], indexes: frozenset[str]) -> list[str]:
    """Build those of `indexes` anew that belong to the collections `names`; an application's are its own."""
    done: list[str] = []
    with database.atomic():
        for name in names:
            for column in INDEXED:
                if f"{name}_{column}" in indexes:
                    database.connection.execute(f"REINDEX {name}_{column}")
                    done.append(f"index {name}_{column} was built again")
    return done


def mend_collection(database: Database, name: str, kinds: frozenset[str], now: str) -> list[str]:
    """Mend what findings of these `kinds` are about, in one transaction; returns what was done, a line each.

    A reader sees the collection as it was, or mended. `now` is the time for states that are made or changed.
    """
    with database.atomic():
        spec = read_spec(database, name)
        assert spec is not None  # it was examined a moment ago, and its runs are locked out
        return list(_Mending(database, spec, now).mend(kinds))


class _Mending:
    """One collection, inside one transaction. `_again` collects the documents that the next run must index again."""

    def __init__(self, database: Database, spec: CollectionSpec, now: str) -> None:
        self._connection = database.connection
        self._writer = CollectionWriter(database, spec.name)
        self._spec = spec
        self._name = spec.name
        self._now = now
        self._connection.execute("DROP TABLE IF EXISTS temp.qedge_doctor_again")
        self._connection.execute(
            "CREATE TEMP TABLE qedge_doctor_again"
            " (source_id TEXT, document_id TEXT, PRIMARY KEY (source_id, document_id))"
        )

    def mend(self, kinds: frozenset[str]) -> Iterator[str]:
        # Triggers and full text come first, so that deleted rows go out of an index that is right.
        missing = missing_schema(self._connection, self._name)
        yield from self._make_triggers(missing)
        if any(kind.startswith("full_text") for kind in kinds):
            yield self._rebuild_full_text()
        if kinds & {"vectors_misplaced", "vectors_of_wrong_size"}:
            yield self._rebuild_vectors()
        yield from self._mend_staged()
        yield from self._delete_vectors()
        if "chunks_damaged" in kinds:
            yield from self._delete_damaged_chunks()
        yield from self._give_vectors()
        yield from self._number_again()
        if "key" in missing:
            self._connection.execute(key_index_sql(self._name))
            yield "the unique index of the keys was made again"
        yield from self._mend_state()

    def _each(self, query: str, values: tuple[object, ...] = ()) -> Iterator[Any]:
        """The rows of a query as they are now, kept in a temporary table: not in memory, and whatever is changed
        meanwhile. One at a time."""
        self._connection.execute("DROP TABLE IF EXISTS temp.qedge_doctor_each")
        self._connection.execute(f"CREATE TEMP TABLE qedge_doctor_each AS {query}", values)
        yield from self._connection.execute("SELECT * FROM temp.qedge_doctor_each")

    def _make_triggers(self, missing: set[str]) -> Iterator[str]:
        for event, sql in trigger_sql(self._name).items():
            if event in missing:
                self._connection.execute(f"DROP TRIGGER IF EXISTS {self._name}_after_{event}; {sql}")
                yield f"the trigger for {event} was made again"

    def _rebuild_full_text(self) -> str:
        table = f"{self._name}_fts"
        # The one thing that 'rebuild' does not make anew, and cannot do without: 4 is the format of an index.
        self._connection.execute(f"INSERT OR IGNORE INTO {table}_config VALUES ('version', 4)")
        self._connection.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")
        return "the full-text index was built again from the chunks"

    # vectors

    def _rebuild_vectors(self) -> str:
        connection, name = self._connection, self._name
        connection.execute("CREATE TEMP TABLE qedge_doctor_vector (row INTEGER PRIMARY KEY, embedding BLOB)")
        twice: set[int] = set()
        for block in vector_blocks(connection, self._spec):
            if block.vectors is None:
                continue
            for rowid, vector in zip(block.rowids.tolist(), block.vectors, strict=True):
                connection.execute(
                    "INSERT OR IGNORE INTO temp.qedge_doctor_vector VALUES (?, ?)", (rowid, vector.tobytes())
                )
                if not connection.changes():
                    twice.add(rowid)  # which of the two is the chunk's, nobody knows
        connection.executemany("DELETE FROM temp.qedge_doctor_vector WHERE row = ?", ((rowid,) for rowid in twice))
        connection.execute(f"DROP TABLE {name}_vec")
        connection.execute(vector_table_sql(self._spec))
        kept: int = connection.execute("SELECT count(*) FROM temp.qedge_doctor_vector").get
        connection.execute(
            f"INSERT INTO {name}_vec (rowid, embedding)"
            " SELECT row, embedding FROM temp.qedge_doctor_vector ORDER BY row"
        )
        connection.execute("DROP TABLE temp.qedge_doctor_vector")
        return f"the vector table was built again from {kept} vectors"

    def _delete_vectors(self) -> Iterator[str]:
        connection, name = self._connection, self._name
        delete = f"DELETE FROM {name}_vec WHERE rowid = ?"
        orphaned = unusable = 0
        for row in self._each(f"SELECT rowid FROM {name}_vec_rowids EXCEPT SELECT _rowid FROM {name}"):
            connection.execute(delete, row)
            orphaned += 1
        # One block after the other, since a deletion changes the blocks under a cursor.
        numbers = self._each(f"SELECT chunk_id FROM {name}_vec_chunks")
        for block in (block for (number,) in numbers for block in vector_blocks(connection, self._spec, number)):
            spoilt = [] if block.vectors is None else block.rowids[~block.usable()].tolist()
            connection.executemany(delete, ((rowid,) for rowid in spoilt))
            unusable += len(spoilt)
        if orphaned:
            yield f"{orphaned} vectors without a chunk were deleted"
        if unusable:
            yield f"{unusable} vectors that are zero or not finite were deleted"

    def _give_vectors(self) -> Iterator[str]:
        """A chunk without a vector gets that of an equal text; without one it goes, so that the next run adds it."""
        given = lost = 0
        for rowid, source_id, document_id, digest in self._each(
            f"SELECT _rowid, source_id, document_id, content_hash FROM {self._name} WHERE _rowid IN"
            f" (SELECT _rowid FROM {self._name} EXCEPT SELECT rowid FROM {self._name}_vec_rowids)"
        ):
            try:
                vector = self._writer.find_vector(source_id, digest, rowid)
            except VectorsMissing:
                self._again(source_id, document_id)
                self._writer.delete([rowid])
                lost += 1
            else:
                self._connection.execute(
                    f"INSERT INTO {self._name}_vec (rowid, embedding) VALUES (?, ?)", (rowid, vector)
                )
                given += 1
        if given:
            yield f"{given} chunks were given the vector of an equal text"
        if lost:
            yield f"{lost} chunks without a vector were deleted"

    # rows

    def _delete_damaged_chunks(self) -> Iterator[str]:
        deleted = 0
        for source_id, document_id in self._each(f"SELECT DISTINCT source_id, document_id FROM {self._name}"):
            # Again, since a key also says how many equal texts come before: with one of them gone it may be wrong.
            while damaged := damaged_chunks(self._connection, self._name, source_id, document_id):
                self._again(source_id, document_id)
                self._writer.delete(damaged)
                deleted += len(damaged)
        if deleted:
            yield f"{deleted} chunks whose hash or key was not that of their text were deleted"

    def _number_again(self) -> Iterator[str]:
        name = self._name
        numbered = 0
        for rowid, source_id, document_id, number in self._each(
            f"SELECT _rowid, source_id, document_id, number FROM (SELECT _rowid, source_id, document_id, ordinal,"
            " row_number() OVER (PARTITION BY source_id, document_id ORDER BY ordinal, char_start, _rowid) - 1"
            " AS number"
            f" FROM {name}) WHERE ordinal IS NOT number"
        ):
            self._again(source_id, document_id)
            self._connection.execute(f"UPDATE {name} SET ordinal = ? WHERE _rowid = ?", (number, rowid))
            numbered += 1
        if numbered:
            yield f"{numbered} chunks were numbered again"

    # state

    def _again(self, source_id: str, document_id: str) -> None:
        self._connection.execute(
            "INSERT OR IGNORE INTO temp.qedge_doctor_again VALUES (?, ?)", (source_id, document_id)
        )

    def _mend_state(self) -> Iterator[str]:
        """A document without hashes is indexed again by the next run, whatever its bytes, and by the sensor too."""
        connection, name = self._connection, self._name
        for kind in ("state_damaged", "state_disagrees", "state_missing"):
            connection.execute(
                f"INSERT OR IGNORE INTO temp.qedge_doctor_again {STATE_CHECKS[kind].format(name=name)}", (name,)
            )
        connection.execute(
            "INSERT OR IGNORE INTO qedge_ingest_document (collection, source_id, document_id, chunk_count, status,"
            " last_run_id, updated_utc) SELECT ?, source_id, document_id, 0, 'indexed', '', ? FROM"
            " temp.qedge_doctor_again",
            (name, self._now),
        )
        connection.execute(
            "UPDATE qedge_ingest_document AS d SET content_hash = NULL, recipe_hash = NULL, updated_utc = ?2,"
            f" chunk_count = (SELECT count(*) FROM {name} AS c"
            " WHERE c.source_id = d.source_id AND c.document_id = d.document_id)"
            " WHERE collection = ?1 AND (source_id, document_id) IN (SELECT source_id, document_id FROM"
            " temp.qedge_doctor_again)",
            (name, self._now),
        )
        if again := connection.changes():
            yield f"{again} documents will be indexed again by the next run of their source"
        wrong = 0
        for document in self._each(STATE_CHECKS["versions_wrong"].format(name=name), (name,)):
            connection.execute(
                "DELETE FROM qedge_ingest_version WHERE collection = ? AND source_id = ? AND document_id = ?",
                (name, *document),
            )
            wrong += 1
        if wrong:
            yield f"{wrong} stage versions were deleted"
        notes = [key for key in damaged_notes(connection, name) if key != f"{name}/model"]
        connection.executemany("DELETE FROM qedge_ingest_meta WHERE key = ?", ((key,) for key in notes))
        if notes:
            yield f"{len(notes)} notes of runs were deleted"

    def _mend_staged(self) -> Iterator[str]:
        unusable = list(unusable_staged(self._connection, self._spec))
        self._connection.executemany(
            "DELETE FROM qedge_ingest_staged WHERE collection = ? AND source_id = ? AND content_hash = ?",
            ((self._name, source_id, digest) for source_id, digest in unusable),
        )
        left = leftover_sources(self._connection, self._name)
        for source_id in left:
            self._writer.clear_staged(source_id)
        if unusable or left:
            yield f"{len(unusable) + sum(left.values())} staged vectors were deleted"
