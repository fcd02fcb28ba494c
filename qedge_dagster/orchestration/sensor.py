"""The sensor that keeps a collection fresh."""

import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from dagster import (
    DagsterRunStatus,
    DefaultSensorStatus,
    JobDefinition,
    RunRequest,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SkipReason,
    sensor,
)

from qedge_dagster.collection.connection import Database
from qedge_dagster.errors import CATALOGUE, QedgeError
from qedge_dagster.hashing import ByteLimitExceeded, hash_stream
from qedge_dagster.orchestration.abandoned import fail_abandoned_runs
from qedge_dagster.orchestration.damage import known_damage
from qedge_dagster.orchestration.jobs import ingest_op_name
from qedge_dagster.orchestration.partitions import add_partitions, delete_partitions, partition_key_of
from qedge_dagster.orchestration.presence import end_dead_runs
from qedge_dagster.orchestration.resource import IngestionResource, ingestion_of
from qedge_dagster.orchestration.target import IngestionTarget
from qedge_dagster.pipeline.lock import is_locked
from qedge_dagster.pipeline.pipeline import IngestionPipeline
from qedge_dagster.pipeline.stages import Stages
from qedge_dagster.sources import Source, SourceItem, UnlistedPart
from qedge_dagster.sources.base import check_id
from qedge_dagster.state import DocumentRow, StateStore

__all__ = ["build_reindex_sensor"]

_UNFINISHED = [
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]
_ACTIVE = "A run is active; it may be about to bring these documents up to date."
# What a tick may read to find out that a document with a new modification time is the same: ticks have a deadline.
_HASHED_BYTES_PER_TICK = 256 * 1024 * 1024
# Of the rows that a tick deletes, at some 8 ms each.
_PARTITIONS_DELETED_PER_TICK = 500


def build_reindex_sensor(
    target: IngestionTarget,
    job: JobDefinition,
    *,
    minimum_interval_seconds: int = 30,
    documents_per_run: int = 500,
    default_status: DefaultSensorStatus = DefaultSensorStatus.RUNNING,
) -> SensorDefinition:
    """Compares the source with what the database holds, by size, modification time and recipe, and requests a run of
    `job` (that of `build_ingest_job`) for new, changed and vanished documents. Nothing is read but documents whose
    modification time alone has moved. An edit that keeps both is found by the full pass of the schedule."""

    @sensor(
        name=f"{target.identifier}_reindex",
        job=job,
        minimum_interval_seconds=minimum_interval_seconds,
        default_status=default_status,
        description="Requests a run for documents that are new, changed or gone.",
        required_resource_keys={target.resource_key},
    )
    def reindex(context: SensorEvaluationContext) -> RunRequest | SkipReason:
        ingestion = ingestion_of(context, target)
        if _is_locked(target, ingestion):
            return SkipReason(_ACTIVE)
        end_dead_runs(context.instance)
        context.update_cursor(fail_abandoned_runs(context.instance, target, context.cursor))
        if context.instance.get_runs_count(RunsFilter(tags=target.run_tags, statuses=_UNFINISHED)):
            return SkipReason(_ACTIVE)
        if known_damage(context.instance, target, ingestion.database):
            return SkipReason(f"The last run has found {ingestion.database} damaged: {CATALOGUE[6204].remedy}.")
        try:
            with closing(ingestion.open(target.collection)) as pipeline:
                found = _compare(target, ingestion, pipeline)
        except QedgeError as error:
            return SkipReason(str(error))
        _register(context, target, found)
        if not found.outstanding:
            return SkipReason(found.summary())
        documents = found.outstanding[:documents_per_run]
        return RunRequest(
            run_key=uuid.uuid4().hex,  # what is asked for again must not be taken for a duplicate
            tags=target.run_tags,
            run_config={"ops": {ingest_op_name(target): {"config": {"documents": documents}}}},
        )

    return reindex


def _is_locked(target: IngestionTarget, ingestion: IngestionResource) -> bool:
    """Whether some run holds the source, one for selected partitions or from outside of Dagster perhaps."""
    database = Path(ingestion.database)
    return database.exists() and is_locked(database, target.collection, target.source.source_id)


@dataclass(slots=True)
class _Found:
    """What a look at the source has shown. `touched` are rows whose document has another time and the same bytes."""

    listed: int = 0
    unlisted: int = 0
    known: list[str] = field(default_factory=list[str])
    outstanding: list[str] = field(default_factory=list[str])
    touched: list[DocumentRow] = field(default_factory=list[DocumentRow])
    unread: int = 0

    def summary(self) -> str:
        parts = [f"Nothing is known to be outstanding: {self.listed} documents have their recorded size and time."]
        if self.touched:
            parts.append(f"{len(self.touched)} of them have a new time and the same content.")
        if self.unread:
            parts.append(f"{self.unread} with a new time are left to read in the next ticks.")
        if self.unlisted:
            parts.append(f"{self.unlisted} part(s) of the source could not be listed.")
        return " ".join(parts)


def _compare(target: IngestionTarget, ingestion: IngestionResource, pipeline: IngestionPipeline) -> _Found:
    with ingestion.state(target.collection) as state:
        if state is not None:
            recorded, model = state.model(), pipeline.stages.model()
            if recorded is not None and recorded.identity != model.identity:
                raise QedgeError(
                    6012,
                    f"collection {target.collection} was built with {recorded.profile_id!r}, this model is"
                    f" {model.profile_id!r}",
                    remedy="launch the rebuild job, or go back to the old model",
                )
        found = _look(target.source, state, pipeline.stages, delete_missing=ingestion.delete_missing)
    if found.touched:
        _record_times(target, ingestion, found.touched)
    return found


def _look(source: Source, state: StateStore | None, stages: Stages, *, delete_missing: bool) -> _Found:
    """Nearly all documents are unchanged: for one of those there is one comparison, and no object is made."""
    found, budget = _Found(), _ReadingBudget()
    signatures = state.signatures(source.source_id) if state is not None else {}
    recipe_hash = _recipe_hashes(stages)
    for item in source.items():
        if isinstance(item, UnlistedPart):
            found.unlisted += 1
            continue
        document_id = item.document_id
        signature = signatures.pop(document_id, None)
        if signature is None and not _is_usable(item):
            continue
        found.known.append(document_id)
        recipe = recipe_hash(item)
        if signature == (document_id, recipe, item.size_bytes, item.modified_utc):
            continue
        row = state.document(source.source_id, document_id) if state is not None else None
        if row is None or row.recipe_hash != recipe:
            found.outstanding.append(document_id)
        else:
            _compare_document(item, row, budget, found)
    found.listed = len(found.known)
    if found.listed and not found.unlisted and delete_missing:
        found.outstanding.extend(signatures)  # they are gone
    found.known.extend(signatures)
    return found


def _is_usable(item: SourceItem) -> bool:
    """Of an id that the engine refuses nothing is ever recorded: it would look new for ever."""
    try:
        check_id(item.document_id, "document id")
    except QedgeError:
        return False
    return True


class _ReadingBudget:
    """Bytes that may still be read in this tick."""

    def __init__(self) -> None:
        self.left = _HASHED_BYTES_PER_TICK

    def hash(self, item: SourceItem) -> bytes | None:
        """None if the document cannot be read, or not within what is left."""
        try:
            with item.open() as stream:
                digest, size = hash_stream(stream, self.left)
        except ByteLimitExceeded as error:
            self.left -= error.read
            return None
        except Exception:  # whatever a store raises: the run will say what
            return None
        self.left -= size
        return digest


def _compare_document(item: SourceItem, row: DocumentRow, budget: _ReadingBudget, found: _Found) -> None:
    if item.size_bytes is not None and item.size_bytes != row.size_bytes:
        found.outstanding.append(item.document_id)
        return
    if item.modified_utc is None or item.modified_utc == row.modified_utc:
        return
    if row.status == "unsupported":  # by its name alone
        found.touched.append(row._replace(modified_utc=item.modified_utc))
    elif row.content_hash is None:
        found.outstanding.append(item.document_id)
    elif budget.left < (item.size_bytes or 0):
        found.unread += 1
    elif budget.hash(item) == row.content_hash:
        found.touched.append(row._replace(modified_utc=item.modified_utc))
    else:
        found.outstanding.append(item.document_id)


def _recipe_hashes(stages: Stages) -> Callable[[SourceItem], bytes]:
    resolve = stages.registry.resolve
    hashes = {extractor.id: stages.recipe_hash(extractor) for extractor in stages.registry}
    of_none = stages.recipe_hash(None)

    def recipe_hash(item: SourceItem) -> bytes:
        try:
            return hashes[resolve(item).id]
        except QedgeError:
            return of_none

    return recipe_hash


def _record_times(target: IngestionTarget, ingestion: IngestionResource, touched: list[DocumentRow]) -> None:
    with closing(Database(ingestion.database)) as database:
        state = StateStore(database, target.collection)
        source_id = target.source.source_id
        with database.atomic():
            for row in touched:
                now = state.document(source_id, row.document_id)
                if now is not None and now._replace(modified_utc=row.modified_utc) == row:
                    state.put_document(source_id, row)


def _register(context: SensorEvaluationContext, target: IngestionTarget, found: _Found) -> None:
    """Make the partitions those of the documents; none is deleted as long as its document has rows."""
    wanted = set(map(partition_key_of, found.known))
    existing = set(context.instance.get_dynamic_partitions(target.partitions_name))
    add_partitions(context.instance, target.partitions_name, sorted(wanted - existing))
    if found.listed and not found.unlisted:
        gone = sorted(existing - wanted)[:_PARTITIONS_DELETED_PER_TICK]
        if gone and delete_partitions(context.instance, target.partitions_name, gone) is None:
            context.log.info("%d partition(s) of removed documents are kept while a backfill is active.", len(gone))
