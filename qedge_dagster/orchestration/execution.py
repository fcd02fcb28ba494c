"""One run of the engine inside an op."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import apsw
from dagster import AssetExecutionContext, Failure, OpExecutionContext
from dagster._core.errors import DagsterExecutionInterruptedError

from qedge_dagster.collection.faults import database_error
from qedge_dagster.errors import QedgeError
from qedge_dagster.orchestration.checks import log_checks
from qedge_dagster.orchestration.damage import tag_damage
from qedge_dagster.orchestration.event_log import event_batches
from qedge_dagster.orchestration.events import AssetEvents, Recorded
from qedge_dagster.orchestration.partitions import document_id_of
from qedge_dagster.orchestration.resource import IngestionResource
from qedge_dagster.orchestration.stop import report_canceling, signals_stop, tag_outcome
from qedge_dagster.orchestration.target import IngestionTarget
from qedge_dagster.pipeline import RunOptions, RunResult
from qedge_dagster.pipeline.events import Event, RunFinished
from qedge_dagster.sources import SelectedDocuments

__all__ = ["failure_of", "ingest", "ingest_partitions"]

_REMOVED_NAMED = 20


def ingest_partitions(
    context: AssetExecutionContext, target: IngestionTarget, ingestion: IngestionResource
) -> Iterator[None]:
    """The body of the assets: bring the run's partitions up to date, without a budget, and yield nothing.

    Raises as `ingest` does.
    """
    selected = [document_id_of(key) for key in context.partition_keys]
    options = RunOptions(delete_missing=ingestion.delete_missing)
    ingest(context.op_execution_context, target, ingestion, options, selected=selected)
    yield from ()


def ingest(
    context: OpExecutionContext,
    target: IngestionTarget,
    ingestion: IngestionResource,
    options: RunOptions,
    *,
    documents: Collection[str] | None = None,
    selected: Collection[str] | None = None,
) -> None:
    """One run of the engine: over the documents of `selected` partitions, or some `documents`, or all of the source.

    The last statement of an op, as what stopped the run is raised: `dagster.Failure` for a failed run, and
    `DagsterExecutionInterruptedError` for one that was suspended or cancelled, which Dagster then ends as CANCELED.
    """
    try:
        # The handlers first: to load a model takes seconds.
        with signals_stop() as request, closing(ingestion.open(target.collection)) as pipeline:
            request.calls(pipeline.cancel)
            ids = documents if selected is None else selected
            source = target.source if ids is None else SelectedDocuments(target.source, ids)
            log = AssetEvents(
                context, target, selected, partial(_recorded, target, ingestion), previews=ingestion.previews
            )
            with (
                event_batches(context.instance),
                closing(pipeline.events(source, options, lock_wait=ingestion.lock_wait)) as events,
            ):
                result = _follow(events, ingestion, log)
            for warning in result.warnings:
                context.log.warning(warning)
            if selected is None:
                context.add_output_metadata(_summary(result, log.removed))
            if log.changed:
                log_checks(context, target, ingestion, pipeline)
            # What suspends a run without a budget is a fault of the embedder.
            stopped = result.outcome == "cancelled" or (result.outcome == "suspended" and selected is None)
            tag_outcome(context.instance, context.run_id, result.outcome, result.suspend_reason)
            if stopped:
                report_canceling(context.instance, context.run_id)
    except QedgeError as error:
        raise _failed(context, ingestion, error) from error
    except apsw.Error as error:
        fault = database_error(error, ingestion.database)
        raise _failed(context, ingestion, fault) from fault
    if stopped:
        raise DagsterExecutionInterruptedError
    if result.outcome == "suspended":
        raise Failure(f"The run was suspended: {result.suspend_reason}.", allow_retries=False)
    if result.failure is not None:
        failure = result.failure
        raise _failed(context, ingestion, QedgeError(failure.code, failure.message, remedy=failure.remedy))


def _recorded(target: IngestionTarget, ingestion: IngestionResource, document_id: str) -> Recorded:
    with ingestion.state(target.collection) as state:
        if state is None:
            return Recorded(None, None)
        source_id = target.source.source_id
        return Recorded(state.document(source_id, document_id), state.versions(source_id, document_id))


def _follow(events: Generator[Event, None, None], ingestion: IngestionResource, log: AssetEvents) -> RunResult:
    for event in events:
        try:
            ingestion.on_event(event)
            log.log(event)
        except Exception as error:
            events.throw(error)  # so that the run is recorded as failed, not as left by its consumer
        if isinstance(event, RunFinished):
            return event.result
    raise AssertionError("a run ends with RunFinished")


def _summary(result: RunResult, removed: Sequence[str]) -> dict[str, Any]:
    """What the run did, for the page of its op."""
    names = (
        *("documents_seen", "documents_indexed", "documents_skipped", "documents_failed", "documents_removed"),
        *("chunks_added", "chunks_removed", "texts_embedded", "tokens_embedded"),
    )
    return {**{name: getattr(result, name) for name in names}, "removed": list(removed[:_REMOVED_NAMED])}


def _failed(context: OpExecutionContext, ingestion: IngestionResource, error: QedgeError) -> Failure:
    if error.code == 6204:
        tag_damage(context.instance, context.run_id, ingestion.database)
    return failure_of(error)


def failure_of(error: QedgeError) -> Failure:
    metadata = {"code": error.code, "error": f"{error.code} {error.name}: {error.message}", "remedy": error.remedy}
    return Failure(str(error), metadata=metadata, allow_retries=False)
