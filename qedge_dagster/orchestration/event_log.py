"""Dagster's own SQLite event log, with the events of one document in one transaction.

Files and schema are Dagster's: a home may go from one storage to the other and back. What is saved is what Dagster
repeats for each event: an engine for every call, and with it every compiled statement, two look-ups of the schema and
two commits.

Between batches no connection to a run's file is kept, so a closed run holds no file, a run can be deleted, and the file
watcher still sees the file change when its last connection is closed. To the index, one may be kept idle as long as
batches follow one another: the last connection that is closed writes all of the WAL into the file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from dagster import AssetKey, DagsterEventType, DagsterInstance, DagsterInvariantViolationError, EventLogEntry, Field
from dagster._config import StringSource, UserConfigSchema
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.event_log.schema import (
    AssetKeyTable,
    DynamicPartitionsTable,
    SqlEventLogStorageTable,
)
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME
from dagster._core.storage.sql import create_engine
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._serdes import ConfigurableClassData
from dagster._time import datetime_from_timestamp
from sqlalchemy import bindparam, select, text
from sqlalchemy.engine import Connection, Engine, Transaction
from sqlalchemy.pool import NullPool

__all__ = ["BatchedEventLogStorage", "event_batch", "event_batches"]

# The index, and the runs that a process is likely to go back to: a daemon meets every run there is.
_ENGINES_KEPT = 8

_KINDS = {DagsterEventType.ASSET_MATERIALIZATION, DagsterEventType.ASSET_OBSERVATION}

_INSERT_EVENT = SqlEventLogStorageTable.insert()
_PARTITIONS = (
    select(DynamicPartitionsTable.c.partition)
    .where(DynamicPartitionsTable.c.partitions_def_name == bindparam("name"))
    .order_by(DynamicPartitionsTable.c.id)
)
# What `serialize_value` makes of an `EventLogRecord`: the event in it is serialised already.
_RECORD = '{"__class__": "EventLogRecord", "event_log_entry": %s, "storage_id": %d}'
_UPDATE_ASSET = AssetKeyTable.update().where(AssetKeyTable.c.asset_key == bindparam("of_asset"))


def event_batch(instance: DagsterInstance) -> AbstractContextManager[None]:
    """The batch of the instance's event log, or a context that does nothing where the instance has another storage."""
    storage = instance.event_log_storage
    return storage.batch() if isinstance(storage, BatchedEventLogStorage) else nullcontext()


def event_batches(instance: DagsterInstance) -> AbstractContextManager[None]:
    """To be held while batches follow one another."""
    storage = instance.event_log_storage
    return storage.batches() if isinstance(storage, BatchedEventLogStorage) else nullcontext()


@dataclass(slots=True)
class _Batch:
    """`ids` are the storage ids in the index of the latest events, by asset, type and partition."""

    stack: ExitStack
    transactions: dict[str, Transaction] = field(default_factory=dict[str, Transaction])
    ids: dict[tuple[AssetKey, DagsterEventType, str], int] = field(
        default_factory=dict[tuple[AssetKey, DagsterEventType, str], int]
    )
    broken: bool = False


class BatchedEventLogStorage(SqliteEventLogStorage):
    """To be named in `dagster.yaml`:

        event_log_storage:
          module: qedge_dagster.orchestration.event_log
          class: BatchedEventLogStorage

    `base_dir` is the folder of the files; where it is left out, that of Dagster's default: `history/runs` below the
    root of the instance.
    """

    def __init__(self, base_dir: str | None = None, inst_data: ConfigurableClassData | None = None) -> None:
        # Re-entrant, unlike that of the base class: whoever holds it while a batch is open is the batch's own thread.
        self._lock = threading.RLock()
        self._batch: _Batch | None = None
        self._engines: dict[str, Engine] = {}
        self._tables: set[str] = set()
        self._asset_columns: set[str] = set()
        self._inst_data = inst_data
        self._obs = None
        self._opened = False
        if base_dir is not None:
            self._open(base_dir)

    def _open(self, base_dir: str) -> None:
        super().__init__(base_dir, self._inst_data)
        self._opened = True

    @classmethod
    def config_type(cls) -> UserConfigSchema:
        return {"base_dir": Field(StringSource, is_required=False)}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> BatchedEventLogStorage:
        return cls(inst_data=inst_data, **config_value)

    def register_instance(self, instance: DagsterInstance) -> None:
        # Only here is it known where the instance lies: `dagster dev` makes a root that no environment variable names.
        if not self._opened:
            self._open(os.path.join(instance.root_directory, "history", "runs"))
        super().register_instance(instance)

    @contextmanager
    def batches(self) -> Generator[None, None, None]:
        """Keep an idle connection to the index, which holds no lock. Not across a fork."""
        with self._lock:
            engine = self._engine(INDEX_SHARD_NAME)
        with engine.connect() as connection:
            # SQLite opens the file at the first read; what is left unread would be a lock.
            connection.execute(text("SELECT 1 FROM event_logs LIMIT 1")).all()
            connection.rollback()
            yield

    @contextmanager
    def batch(self) -> Generator[None, None, None]:
        """Commit what this thread stores at the end, in one transaction for each file, or nothing if anything fails.

        What is read meanwhile holds what was stored; other threads wait, and other processes that write to the index
        do so from the first asset event on. So it is no place for slow work. Batches nest: the outermost one commits.
        Only between the commits of the two files can a crash part them.

        Raises whatever the context did, and `DagsterInvariantViolationError` if it went on after a failed write.
        """
        with self._lock:
            if self._batch is not None:
                yield
                return
            with ExitStack() as stack:
                batch = self._batch = _Batch(stack)
                stack.callback(self._end_batch)
                yield
                if batch.broken:
                    raise DagsterInvariantViolationError("A write to the event log failed: its batch was rolled back.")
                # The run comes before the index, as in the base class: a crash between them leaves its page complete.
                for shard in sorted(batch.transactions, key=lambda shard: shard == INDEX_SHARD_NAME):
                    batch.transactions[shard].commit()

    def _end_batch(self) -> None:
        self._batch = None

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        with self.batch():
            super().store_event_batch(events)

    def get_latest_storage_id_by_partition(
        self,
        asset_key: AssetKey,
        event_type: DagsterEventType,
        partitions: set[str] | None = None,
        after_cursor: int | None = None,
    ) -> Mapping[str, int]:
        with self._lock:
            if self._batch is not None and partitions and after_cursor is None:
                # Its transaction keeps other writers out, so the latest of its own are the latest of all.
                ids = self._batch.ids
                known = {name: ids.get((asset_key, event_type, name)) for name in partitions}
                found = {name: storage_id for name, storage_id in known.items() if storage_id is not None}
                if len(found) == len(partitions):
                    return found
            return super().get_latest_storage_id_by_partition(asset_key, event_type, partitions, after_cursor)

    def store_event(self, event: EventLogEntry) -> None:
        stored = event.dagster_event
        if stored is None or stored.event_type not in _KINDS or stored.asset_key is None:
            super().store_event(event)
            return
        # As the base class does it, with statements that are made once.
        row = self._event_to_row(event)
        with self.batch():
            with self.run_connection(event.run_id) as connection:
                connection.execute(_INSERT_EVENT, row)
            with self.index_connection() as connection:
                key = connection.execute(_INSERT_EVENT, row).inserted_primary_key
                assert key is not None
                self._store_asset_event_tags(connection, [event], [key[0]])
                values: dict[str, Any] = {"of_asset": row["asset_key"]}
                if stored.is_step_materialization:
                    values["last_materialization"] = _RECORD % (row["event"], key[0])
                    values["last_run_id"] = event.run_id
                if self._has_asset_key_index_cols_on_connection(connection):
                    values["last_materialization_timestamp"] = datetime_from_timestamp(event.timestamp)
                # The base class inserts first, which fails for every event of an asset but the first.
                if len(values) > 1 and connection.execute(_UPDATE_ASSET, values).rowcount == 0:
                    self._store_asset_event(connection, event, key[0])
            if self._batch is not None and stored.partition is not None:
                self._batch.ids[stored.asset_key, stored.event_type, stored.partition] = key[0]

    @contextmanager
    def _connect(self, shard: str) -> Generator[Connection, None, None]:
        with self._lock:
            if self._batch is None:
                with self._engine(shard).begin() as connection:
                    yield connection
                return
            batch = self._batch
            transaction = batch.transactions.get(shard)
            if transaction is None:
                # Begun at once: where there is none, the base class begins and commits one of its own.
                transaction = batch.stack.enter_context(self._engine(shard).connect()).begin()
                batch.transactions[shard] = transaction
            try:
                yield transaction.connection
            except BaseException:
                batch.broken = True
                raise

    def _engine(self, shard: str) -> Engine:
        """The engine of a file that is set up. It has no pool, so it holds statements and no connection."""
        engine = self._engines.pop(shard, None)
        if engine is None:
            engine = create_engine(
                self.conn_string_for_shard(shard),
                poolclass=NullPool,
                connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS},
            )
        if shard not in self._initialized_dbs:
            self._initdb(engine)
            self._initialized_dbs.add(shard)
        self._engines[shard] = engine  # the latest used is the last
        if len(self._engines) > _ENGINES_KEPT:
            del self._engines[next(iter(self._engines))]
        return engine

    def get_dynamic_partitions(self, partitions_def_name: str) -> Sequence[str]:
        # The base class makes a row of two columns for each key, and asks for it by its place.
        self._check_partitions_table()
        with self.index_connection() as connection:
            return connection.execute(_PARTITIONS, {"name": partitions_def_name}).scalars().all()

    # What the schema once had, it keeps: tables and columns come with a migration, and none goes.

    def has_table(self, table_name: str) -> bool:
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    def _has_asset_key_col_on_connection(self, conn: Connection, column_name: str) -> bool:
        if column_name not in self._asset_columns and super()._has_asset_key_col_on_connection(conn, column_name):
            self._asset_columns.add(column_name)
        return column_name in self._asset_columns
