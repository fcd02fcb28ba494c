"""The code location that the processes load: what it is about comes from the environment.

It tells how it went by two files beside the database: `texts` has a line for each text embedded, `signals` one for each
signal that reached a run, with what the run was doing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from qedge_dagster.embedding.base import Embedder, EmbeddingBatch
from qedge_dagster.orchestration import (
    BudgetConfig,
    IngestionResource,
    IngestionTarget,
    build_ingestion_definitions,
)
from qedge_dagster.orchestration.event_log import BatchedEventLogStorage
from qedge_dagster.orchestration.events import AssetEvents
from qedge_dagster.orchestration.stop import SignalRequest
from qedge_dagster.orchestration.target import STAGES
from qedge_dagster.pipeline.events import Event
from qedge_dagster.sources import FolderSource
from tests.pipeline.support import CountingEmbedder

ROOT = Path(os.environ["QEDGE_TEST_ROOT"])


class RecordingEmbedder(CountingEmbedder):
    def embed_documents(self, texts: Sequence[str]) -> EmbeddingBatch:
        batch = super().embed_documents(texts)
        with (ROOT / "texts").open("a") as file:
            file.writelines(f"{text!r}\n" for text in texts)
        return batch


class LiveResource(IngestionResource):
    def embedder(self) -> Embedder:
        return RecordingEmbedder(seconds_per_call=float(os.environ.get("QEDGE_TEST_SECONDS_PER_CALL", "0")))


def slow_events(seconds: float) -> None:
    """Each event of a document takes so long to store, in the transaction that it belongs to; each signal notes its
    process, and whether it came in the midst of a document's events."""
    log, came, store = AssetEvents.log, SignalRequest.came, BatchedEventLogStorage.store_event
    writing = False

    def slow_store(self: BatchedEventLogStorage, event: dg.EventLogEntry) -> None:
        if writing:
            time.sleep(seconds)
        store(self, event)

    def noted_log(self: AssetEvents, event: Event) -> None:
        nonlocal writing
        writing = True
        (ROOT / "writing").touch()
        try:
            log(self, event)
        finally:
            (ROOT / "writing").unlink()
            writing = False

    def noted_signal(self: SignalRequest) -> None:
        with (ROOT / "signals").open("a") as file:
            file.write(f"{os.getpid()} {'writing' if writing else 'between'}\n")
        came(self)

    AssetEvents.log, SignalRequest.came = noted_log, noted_signal  # type: ignore[method-assign]
    BatchedEventLogStorage.store_event = slow_store  # type: ignore[method-assign]


if os.environ.get("QEDGE_TEST_SLOW_EVENTS"):
    slow_events(float(os.environ["QEDGE_TEST_SLOW_EVENTS"]))

budget = os.environ.get("QEDGE_TEST_MAX_DOCUMENTS")
target = IngestionTarget(FolderSource(ROOT / "docs", source_id="docs"), "notes")
ingestion = LiveResource(
    database=str(ROOT / "t.db"), budget=BudgetConfig(max_documents=int(budget) if budget else None)
)
executors = {"in_process": dg.in_process_executor, "multiprocess": dg.multiprocess_executor}
defs = dg.Definitions.merge(
    build_ingestion_definitions(
        target, ingestion, sensor_interval=1, automatic=os.environ.get("QEDGE_TEST_AUTOMATIC") == "1"
    ),
    dg.Definitions(
        jobs=[dg.define_asset_job("notes_partitions", selection=[target.key(stage) for stage in STAGES])],
        executor=executors[os.environ.get("QEDGE_TEST_EXECUTOR", "multiprocess")],
    ),
)
