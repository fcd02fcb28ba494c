"""One state of a collection, for a reader that others do not wait for."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.faults import database_error
from qedge_dagster.collection.schema import CollectionSpec, read_spec
from qedge_dagster.errors import QedgeError

__all__ = ["collection_snapshot", "open_snapshot", "read_errors"]


@contextmanager
def read_errors(path: Path) -> Generator[None]:
    """What SQLite raises, as `QedgeError` 6204 if the file is damaged, else 6002."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise database_error(error, path) from error
    except apsw.Error as error:
        raise QedgeError(6002, f"{path} cannot be read: {error}") from error


@contextmanager
def collection_snapshot(database: Database, name: str) -> Generator[CollectionSpec]:
    """A read transaction, with the spec that holds in it: a rebuild by another process may change it between two.

    Raises `QedgeError` 6002 if there is no such collection, and what `read_errors` raises.
    """
    with read_errors(database.path), database.snapshot():
        spec = read_spec(database, name)
        if spec is None:
            raise QedgeError(6002, f"{database.path} holds no collection {name}")
        yield spec


@contextmanager
def open_snapshot(path: Path, name: str) -> Generator[tuple[Database, CollectionSpec]]:
    """The same on a connection of its own, for what takes long and must not hold up searches."""
    with closing(Database(path, read_only=True)) as database, collection_snapshot(database, name) as spec:
        yield database, spec
