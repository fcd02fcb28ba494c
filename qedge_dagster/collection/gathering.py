"""Moving vectors out of blocks that are nearly empty, so that a file does not grow with every edit.

vec0 puts a row into its newest block, never into the hole that a deleted one has left, and gives a block back with the
last of its rows: after many edits a block of 256 slots holds a handful. Its pages are then free, and SQLite uses them
for the next block; the file itself stays as large as it ever was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import apsw

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.schema import CollectionSpec, read_spec
from qedge_dagster.collection.vector_blocks import vector_blocks

__all__ = ["gather_vectors"]

# Of the slots in all blocks but the newest, this share is in use when a gathering has ended. The nearer to 1, the more
# rows are moved for each that is deleted; here one or two.
_FILL = 0.8


def gather_vectors(
    database: Database, name: str, stopping: Callable[[], bool] = lambda: False, seconds: float = math.inf
) -> int:
    """Empty the sparsest blocks of a collection until few slots are unused; returns how many vectors were moved.

    One block is a transaction of some milliseconds. Between two of them it ends early if `stopping()`, or after so many
    seconds; the next one goes on. Does nothing where there is no such collection.
    """
    spec = read_spec(database, name)
    if spec is None:
        return 0
    end = time.monotonic() + seconds
    moved = 0
    for number in _superfluous_blocks(database.connection, name):
        if stopping() or time.monotonic() >= end:
            break
        with database.atomic():
            moved += _empty(database.connection, spec, number)
    return moved


def _superfluous_blocks(connection: apsw.Connection, name: str) -> list[int]:
    """The sparsest blocks first, as many as must be emptied."""
    validity = dict(connection.execute(f"SELECT chunk_id, validity FROM {name}_vec_chunks"))
    if not validity:
        return []
    used = {number: int.from_bytes(bits, "little").bit_count() for number, bits in validity.items()}
    size = 8 * len(validity[max(used)])
    allowed = math.ceil(sum(used.values()) / (size * _FILL)) + 1
    room = size - used.pop(max(used))  # of the newest, which takes what is moved
    chosen: list[int] = []
    added = moving = 0
    for number in sorted(used, key=used.__getitem__):
        if len(used) + 1 - len(chosen) + added <= allowed:
            break
        chosen.append(number)
        moving += used[number]
        added = math.ceil(max(0, moving - room) / size)
    return chosen


def _empty(connection: apsw.Connection, spec: CollectionSpec, number: int) -> int:
    """Move the rows of one block as vec0 finds them. The newest is left alone: its rows would come back to it."""
    name = spec.name
    if number == connection.execute(f"SELECT max(chunk_id) FROM {name}_vec_chunks").get:
        return 0
    rowids = [rowid for block in vector_blocks(connection, spec, number) for rowid in block.rowids.tolist()]
    for rowid in rowids:
        vector = connection.execute(f"SELECT embedding FROM {name}_vec WHERE rowid = ?", (rowid,)).get
        if vector is not None:  # else the table is damaged, and no better for a move
            connection.execute(f"DELETE FROM {name}_vec WHERE rowid = ?", (rowid,))
            connection.execute(f"INSERT INTO {name}_vec (rowid, embedding) VALUES (?, ?)", (rowid, vector))
    return len(rowids)
