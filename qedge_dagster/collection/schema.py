"""Tables of a collection and of the ingestion state, their creation, and the refusal of a file that is not ours.

Names and types are those of the .NET library, so that an application that uses it can open the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import apsw

from qedge_dagster.collection.connection import Database
from qedge_dagster.errors import QedgeError
from qedge_dagster.hashing import HASH_ALGORITHM

__all__ = [
    "INDEXED",
    "SCHEMA_VERSION",
    "CollectionSpec",
    "Distance",
    "FtsTokenizer",
    "check_file",
    "copy_rows",
    "create",
    "create_collection",
    "drop_collection",
    "full_text_sql",
    "key_index_sql",
    "list_collections",
    "read_spec",
    "trigger_sql",
    "vector_table_sql",
]

Distance = Literal["cosine", "l2"]
FtsTokenizer = Literal["unicode61", "porter", "trigram"]

SCHEMA_VERSION = 1

_TOKENIZE: dict[FtsTokenizer, str] = {
    "unicode61": "unicode61 remove_diacritics 2",
    "porter": "porter unicode61 remove_diacritics 2",
    "trigram": "trigram",
}

_COLUMNS = (
    *("_rowid", "key", "source_id", "document_id", "ordinal", "text", "heading_path", "content_hash"),
    *("char_start", "char_end", "token_count", "page", "block_kind", "extractor_id", "media_type", "created_utc"),
)


#: Each index is named after the collection and the column that it begins with.
INDEXED = ("key", "source_id", "document_id", "content_hash")


@dataclass(frozen=True, slots=True)
class CollectionSpec:
    """What is fixed when a collection is made. `first_migration` is the lower of the two `PRAGMA user_version` numbers
    that are claimed, for a file that also belongs to an application with migrations of its own."""

    name: str = "chunks"
    dimensions: int = 384
    distance: Distance = "cosine"
    fts_tokenizer: FtsTokenizer = "unicode61"
    first_migration: int = 1

    def __post_init__(self) -> None:
        # The name becomes part of table names, which SQL cannot bind as parameters.
        reserved = self.name.lower().startswith(("sqlite_", "qedge_ingest")) or self.name.upper() in apsw.keywords
        if reserved or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,59}", self.name):
            raise QedgeError(
                6005,
                f"collection name {self.name!r}: letters, digits and _, a letter first, at most 60, no SQL keyword",
            )
        if self.distance not in ("cosine", "l2"):
            raise QedgeError(6005, f"distance must be cosine or l2, not {self.distance!r}")
        if self.fts_tokenizer not in _TOKENIZE:
            raise QedgeError(
                6005, f"full-text tokenizer must be one of {', '.join(_TOKENIZE)}, not {self.fts_tokenizer!r}"
            )
        if self.first_migration < 1:
            raise QedgeError(6005, f"first_migration must be at least 1, not {self.first_migration}")


def _collection_sql(spec: CollectionSpec) -> str:
    name = spec.name
    return f"""
        CREATE TABLE {name} (
            _rowid INTEGER PRIMARY KEY,
            key TEXT NOT NULL,
            source_id TEXT,
            document_id TEXT,
            ordinal INTEGER,
            text TEXT,
            heading_path TEXT,
            content_hash BLOB,
            char_start INTEGER,
            char_end INTEGER,
            token_count INTEGER,
            page INTEGER,
            block_kind TEXT,
            extractor_id TEXT,
            media_type TEXT,
            created_utc TEXT
        );
        {key_index_sql(name)}
        CREATE INDEX {name}_source_id ON {name} (source_id, document_id);
        CREATE INDEX {name}_document_id ON {name} (document_id);
        CREATE INDEX {name}_content_hash ON {name} (content_hash);

        {full_text_sql(f"{name}_fts", name, spec.fts_tokenizer)}
        {vector_table_sql(spec)}

        {" ".join(trigger_sql(name).values())}
    """


def full_text_sql(table: str, content: str, tokenizer: FtsTokenizer) -> str:
    return f"""
        CREATE VIRTUAL TABLE {table} USING fts5 (
            text, heading_path,
            content='{content}', content_rowid='_rowid', tokenize='{_TOKENIZE[tokenizer]}'
        );
    """


def key_index_sql(name: str) -> str:
    return f"CREATE UNIQUE INDEX {name}_key ON {name} (key);"


def trigger_sql(name: str) -> dict[str, str]:
    """The triggers that keep vectors and full text in step with the rows, by event."""
    unindex = (
        f"INSERT INTO {name}_fts ({name}_fts, rowid, text, heading_path)"
        " VALUES ('delete', old._rowid, old.text, old.heading_path);"
    )
    index = f"INSERT INTO {name}_fts (rowid, text, heading_path) VALUES (new._rowid, new.text, new.heading_path);"
    bodies = {
        "insert": ("AFTER INSERT", index),
        "delete": ("AFTER DELETE", f"{unindex} DELETE FROM {name}_vec WHERE rowid = old._rowid;"),
        # Only the full-text columns: a chunk that merely moves must not be indexed again.
        "update": ("AFTER UPDATE OF text, heading_path", f"{unindex} {index}"),
    }
    return {
        event: f"CREATE TRIGGER {name}_after_{event} {when} ON {name} BEGIN {body} END;"
        for event, (when, body) in bodies.items()
    }


def vector_table_sql(spec: CollectionSpec) -> str:
    return f"""
        CREATE VIRTUAL TABLE {spec.name}_vec USING vec0 (
            embedding float[{spec.dimensions}] distance_metric={spec.distance}, chunk_size=256
        );
    """


_STATE_SQL = """
    CREATE TABLE qedge_ingest_document (
        collection TEXT NOT NULL,
        source_id TEXT NOT NULL,
        document_id TEXT NOT NULL,
        content_hash BLOB,
        recipe_hash BLOB,
        size_bytes INTEGER,
        modified_utc TEXT,
        extractor_id TEXT,
        chunk_count INTEGER NOT NULL,
        status TEXT NOT NULL,
        error TEXT,
        last_run_id TEXT NOT NULL,
        updated_utc TEXT NOT NULL,
        PRIMARY KEY (collection, source_id, document_id)
    ) WITHOUT ROWID;
    CREATE TABLE qedge_ingest_run (
        run_id TEXT NOT NULL PRIMARY KEY,
        collection TEXT NOT NULL,
        source_id TEXT NOT NULL,
        recipe_hash BLOB,
        started_utc TEXT NOT NULL,
        finished_utc TEXT,
        outcome TEXT,
        suspend_reason TEXT,
        documents_indexed INTEGER NOT NULL DEFAULT 0,
        chunks_added INTEGER NOT NULL DEFAULT 0,
        chunks_removed INTEGER NOT NULL DEFAULT 0,
        error TEXT
    ) WITHOUT ROWID;
    CREATE TABLE qedge_ingest_meta (
        key TEXT NOT NULL PRIMARY KEY,
        value TEXT NOT NULL
    ) WITHOUT ROWID;
    -- The data version of each stage's output, by document.
    CREATE TABLE qedge_ingest_version (
        collection TEXT NOT NULL,
        source_id TEXT NOT NULL,
        document_id TEXT NOT NULL,
        extracted BLOB NOT NULL,
        chunks BLOB NOT NULL,
        embeddings BLOB NOT NULL,
        collection_rows BLOB NOT NULL,
        PRIMARY KEY (collection, source_id, document_id)
    ) WITHOUT ROWID;
    -- Vectors of finished windows whose document is not switched yet: what a crash or a budget must not cost again.
    CREATE TABLE qedge_ingest_staged (
        collection TEXT NOT NULL,
        source_id TEXT NOT NULL,
        content_hash BLOB NOT NULL,
        embedding BLOB NOT NULL,
        PRIMARY KEY (collection, source_id, content_hash)
    ) WITHOUT ROWID;
"""


def check_file(database: Database, first_migration: int | None = None) -> bool:
    """True if the file holds our state, False if it may be set up; writes nothing.

    `first_migration` is checked only where the file would be set up. Raises `QedgeError` 6007, 6202, 6203 or 6204.
    """
    connection = database.connection
    version = connection.pragma("user_version")
    if not _table_exists(connection, "qedge_ingest_meta"):
        if first_migration is not None and version != first_migration - 1:
            raise QedgeError(
                6007,
                f"schema versions {first_migration} and {first_migration + 1} are asked for, the file is at {version}",
                remedy=f"use --first-migration {version + 1}, or another database file",
            )
        return False
    meta = dict(
        connection.execute("SELECT key, value FROM qedge_ingest_meta WHERE key IN ('schema_version', 'hash_algorithm')")
    )
    schema_version, algorithm = meta.get("schema_version"), meta.get("hash_algorithm")
    if schema_version is None or not schema_version.isdecimal() or algorithm is None:
        raise QedgeError(6204, "qedge_ingest_meta lacks a valid schema_version or hash_algorithm")
    if int(schema_version) != SCHEMA_VERSION:
        raise QedgeError(6203, f"the state has schema {schema_version}, this release knows {SCHEMA_VERSION}")
    if algorithm != HASH_ALGORITHM:
        raise QedgeError(6202, f"the state is hashed with {algorithm!r}, this release uses {HASH_ALGORITHM!r}")
    return True


def read_spec(database: Database, name: str) -> CollectionSpec | None:
    """The spec of an existing collection as its own tables tell it; None if there is none.

    Raises `QedgeError` 6011 if a table of that name is not a collection.
    """
    connection = database.connection
    CollectionSpec(name)  # refuses a name that must not reach SQL
    if not _table_exists(connection, name):
        return None
    columns = {row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))}
    missing = [column for column in _COLUMNS if column not in columns]
    if missing:
        raise QedgeError(6011, f"table {name} is no collection: it lacks {', '.join(missing)}")
    vector, fts = (_table_sql(connection, f"{name}{suffix}") for suffix in ("_vec", "_fts"))
    dimensions = re.search(r"float\[(\d+)\]", vector)
    distance = re.search(r"distance_metric\s*=\s*(\w+)", vector)
    tokenize = re.search(r"tokenize\s*=\s*['\"]([^'\"]+)['\"]", fts)
    tokenizers = {value: key for key, value in _TOKENIZE.items()}
    if not dimensions or not tokenize or tokenize[1] not in tokenizers:
        raise QedgeError(6011, f"the vector or full-text table of {name} has another form")
    metric = distance[1].lower() if distance else "l2"  # vec0's default
    if metric not in ("cosine", "l2"):
        raise QedgeError(6011, f"collection {name} measures distance as {metric}")
    return CollectionSpec(name, int(dimensions[1]), metric, tokenizers[tokenize[1]])  # type: ignore[arg-type]


def list_collections(database: Database) -> list[str]:
    """Every collection in the file, by name; tables of the same shape that belong to somebody else are not."""
    found: list[str] = []
    for (table,) in database.connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%\\_vec' ESCAPE '\\'"
        " AND sql LIKE 'CREATE VIRTUAL TABLE%' ORDER BY name"
    ):
        name = table.removesuffix("_vec")
        try:
            if read_spec(database, name) is not None:
                found.append(name)
        except QedgeError:
            continue
    return found


def create(database: Database, spec: CollectionSpec) -> None:
    """Make the file and the collection ready, or find them so.

    Raises `QedgeError` 6006, 6007, 6011, 6202, 6203 or 6204 before any write.
    """
    if _is_ready(database, spec):
        database.enable_wal()
        return
    database.enable_wal()
    with database.atomic():
        # Looked at again inside the transaction: another process may have been first.
        if not _is_ready(database, spec):
            create_collection(database, spec)
            if not check_file(database, spec.first_migration):
                database.connection.execute(_STATE_SQL)
                database.connection.execute(
                    "INSERT INTO qedge_ingest_meta (key, value) VALUES ('schema_version', ?), ('hash_algorithm', ?)",
                    (str(SCHEMA_VERSION), HASH_ALGORITHM),
                )
                database.connection.pragma("user_version", spec.first_migration + 1)


def create_collection(database: Database, spec: CollectionSpec) -> None:
    """Create the collection's own tables; the caller holds the transaction."""
    database.connection.execute(_collection_sql(spec))


def drop_collection(database: Database, name: str) -> None:
    """Drop the collection's own tables; the caller holds the transaction."""
    CollectionSpec(name)
    database.connection.execute(f"DROP TABLE {name}_vec; DROP TABLE {name}_fts; DROP TABLE {name};")


def copy_rows(database: Database, source: str, target: str) -> None:
    """Copy all rows and vectors of one collection into an empty one; the caller holds the transaction."""
    for name in (source, target):
        CollectionSpec(name)
    database.connection.execute(
        f"INSERT INTO {target} SELECT * FROM {source};"
        f" INSERT INTO {target}_vec (rowid, embedding) SELECT rowid, embedding FROM {source}_vec;"
    )


def _is_ready(database: Database, spec: CollectionSpec) -> bool:
    known = check_file(database, spec.first_migration)
    found = read_spec(database, spec.name)
    if found is None:
        return False
    if not known:
        raise QedgeError(6201, f"collection {spec.name} exists, but the file holds no ingestion state")
    if found.dimensions != spec.dimensions:
        raise QedgeError(
            6006, f"collection {spec.name} holds {found.dimensions} dimensions, the model gives {spec.dimensions}"
        )
    for what in ("distance", "fts_tokenizer"):
        if getattr(found, what) != getattr(spec, what):
            raise QedgeError(
                6011, f"collection {spec.name} has {what} {getattr(found, what)}, not {getattr(spec, what)}"
            )
    return True


def _table_exists(connection: apsw.Connection, name: str) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)).get is not None


def _table_sql(connection: apsw.Connection, name: str) -> str:
    return connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)).get or ""
