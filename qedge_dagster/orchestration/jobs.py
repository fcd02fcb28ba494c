"""Jobs of a target."""

from contextlib import closing

from dagster import (
    AssetSelection,
    Config,
    JobDefinition,
    OpDefinition,
    OpExecutionContext,
    define_asset_job,
    in_process_executor,
    job,
    op,
)
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition as AssetJob
from pydantic import Field

from qedge_dagster.errors import QedgeError
from qedge_dagster.orchestration.assets import POOL
from qedge_dagster.orchestration.execution import failure_of, ingest
from qedge_dagster.orchestration.partitions import delete_partitions, partition_key_of
from qedge_dagster.orchestration.resource import IngestionResource
from qedge_dagster.orchestration.target import IngestionTarget
from qedge_dagster.pipeline import RunOptions

__all__ = [
    "IngestionConfig",
    "build_checks_job",
    "build_ingest_job",
    "build_prune_job",
    "build_rebuild_job",
    "ingest_op_name",
]

_INGEST = "Bring the collection up to date: all documents, unless some are named in the config."
_REBUILD = "Build the vectors of another model beside the old ones, and switch to them when they are complete."
_PRUNE = "Remove the documents that the source no longer holds, without reading any, and their partitions."


class IngestionConfig(Config):
    """What a run without selected partitions is about."""

    documents: list[str] | None = Field(
        default=None, description="Ids of the documents to bring up to date; all of the source where it is left out."
    )
    allow_empty: bool = Field(default=False, description="Empty the collection if the source holds no document.")


def build_ingest_job(target: IngestionTarget) -> JobDefinition:
    """Bring named documents, or the whole source, up to date. What it does shows at the assets' partitions.

    A job of an op, not of the assets: Dagster cannot run partitioned assets without selecting partitions (once the
    source was observed, it looks up the versions of the selected ones), and a selection is one contiguous range, with
    an event for each of its partitions and assets before the run starts. It runs in the process of the run: one step
    needs no process of its own, and Dagster's multiprocess executor takes a step that stops by itself for a failed one.
    """

    @op(name=ingest_op_name(target), pool=POOL)
    def ingest_documents(context: OpExecutionContext, config: IngestionConfig, ingestion: IngestionResource) -> None:
        options = RunOptions(ingestion.budget.budget(), allow_empty=config.allow_empty)
        ingest(context, target, ingestion, options, documents=config.documents)

    return _job(target, "ingest", _INGEST, ingest_documents)


def ingest_op_name(target: IngestionTarget) -> str:
    return f"{target.identifier}_ingest_documents"


def build_rebuild_job(target: IngestionTarget) -> JobDefinition:
    """After a change of model: prepare its vectors beside the old ones, and switch when the last is ready."""

    @op(name=f"{target.identifier}_rebuild_documents", pool=POOL)
    def rebuild_documents(context: OpExecutionContext, ingestion: IngestionResource) -> None:
        ingest(context, target, ingestion, RunOptions(ingestion.budget.budget(), rebuild=True))

    return _job(target, "rebuild", _REBUILD, rebuild_documents)


def build_checks_job(target: IngestionTarget) -> AssetJob:
    """Evaluate all checks, with the one that reads the whole collection."""
    return define_asset_job(
        f"{target.identifier}_checks",
        selection=AssetSelection.checks_for_assets(target.key("collection")),
        description="Evaluate the asset checks of the collection.",
    )


def build_prune_job(target: IngestionTarget) -> JobDefinition:
    """Remove documents that the source no longer holds, without reading any, and their partitions."""

    @op(name=f"{target.identifier}_prune_documents", pool=POOL)
    def prune(context: OpExecutionContext, ingestion: IngestionResource) -> None:
        with closing(ingestion.open(target.collection)) as pipeline:
            try:
                result = pipeline.prune(target.source)
            except QedgeError as error:
                raise failure_of(error) from error
        for warning in result.warnings:
            context.log.warning(warning)
        if result.failure is not None:
            failure = result.failure
            raise failure_of(QedgeError(failure.code, failure.message, remedy=failure.remedy))
        with ingestion.state(target.collection) as state:
            rows = state.documents(target.source.source_id) if state is not None else iter(())
            known = {partition_key_of(row.document_id) for _, row in rows}
        gone = [key for key in context.instance.get_dynamic_partitions(target.partitions_name) if key not in known]
        deleted = delete_partitions(context.instance, target.partitions_name, gone)
        if deleted is None:
            context.log.warning("%d partition(s) are kept while a backfill is active.", len(gone))
        context.add_output_metadata({"documents_removed": result.documents_removed, "partitions_deleted": deleted or 0})

    return _job(target, "prune", _PRUNE, prune)


def _job(target: IngestionTarget, name: str, description: str, operation: OpDefinition) -> JobDefinition:
    """A job of one op, in the process of the run."""

    @job(
        name=f"{target.identifier}_{name}",
        tags=target.run_tags,
        description=description,
        executor_def=in_process_executor,
    )
    def of_one_op() -> None:
        operation()

    return of_one_op
