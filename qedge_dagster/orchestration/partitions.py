"""Documents as partitions: a key for each id, and its way back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from urllib.parse import unquote_to_bytes

from dagster import DagsterInstance
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus

from qedge_dagster.errors import QedgeError

__all__ = ["add_partitions", "delete_partitions", "document_id_of", "partition_key_of"]

# A call is one statement with a variable for each key: older builds of SQLite allow 999.
_KEYS_PER_CALL = 900

# What Dagster forbids (dots in threes, control characters), what nobody could see, and the sign of the encoding itself.
_THIRD_DOT = re.compile(r"(?<=\.\.)\.")
_EMPTY = "%"


def partition_key_of(document_id: str) -> str:
    """A readable key that Dagster takes: `%` and what cannot be shown are percent-encoded, as is every dot that
    follows two others. The empty id, which nothing else can be encoded as, is a lone `%`."""
    if not document_id:
        return _EMPTY
    if document_id.isprintable() and "%" not in document_id and "..." not in document_id:
        return document_id
    key = "".join(c if c.isprintable() and c != "%" else _encoded(c) for c in document_id)
    return _THIRD_DOT.sub("%2E", key)


def document_id_of(partition_key: str) -> str:
    """The id whose key this is. Raises `QedgeError` 6055 for a key that no id has, such as one typed in by hand."""
    try:
        document_id = "" if partition_key == _EMPTY else _decoded(partition_key)
    except UnicodeError:
        document_id = None
    if document_id is None or partition_key_of(document_id) != partition_key:
        raise QedgeError(6055, f"partition {partition_key!r} is no document's", remedy="delete the partition")
    return document_id


def _encoded(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def _decoded(key: str) -> str:
    return unquote_to_bytes(key.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def add_partitions(instance: DagsterInstance, name: str, keys: Iterable[str]) -> None:
    """Register keys, which may exist already, in batches that every SQLite can take."""
    rest = iter(keys)
    while batch := list(islice(rest, _KEYS_PER_CALL)):
        instance.add_dynamic_partitions(name, batch)


def delete_partitions(instance: DagsterInstance, name: str, keys: Iterable[str]) -> int | None:
    """Delete keys, at some 8 ms each; returns how many. None, and nothing is deleted, while any backfill is active:
    one that aims at a deleted partition would fail."""
    active = BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING])
    if instance.get_backfills(filters=active, limit=1):
        return None
    deleted = 0
    for key in keys:
        instance.delete_dynamic_partition(name, key)
        deleted += 1
    return deleted
