"""Jobs of a target."""

from contextlib import closing
from typing import Any

from dagster import (
    AssetSelection,
    Config,
    JobDefinition,
    OpDefinition,
    OpExecutionContext,
    RunConfig,
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
from qedge_dagster.orchestration.resource import BudgetConfig, IngestionResource, ingestion_of
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
    budget: BudgetConfig | None = Field(default=None, description="Limits of this run, instead of the resource's.")
    force: bool = Field(default=False, description="Process every document, changed or not.")
    rebuild: bool = Field(
        default=False, description="Embed with another model; the old vectors answer until the new are complete."
    )
    delete_missing: bool | None = Field(
        default=None, description="Remove documents that the source no longer holds; as the resource says by default."
    )
    allow_empty: bool = Field(default=False, description="Empty the collection if the source holds no document.")
    fail_fast: bool = Field(default=False, description="Let the first document that fails end the run.")
    strict_recipe: bool = Field(default=False, description="Refuse (6009) to index again because options changed.")
    trust_timestamps: bool = Field(
        default=False, description="Do not read documents whose size and modification time are unchanged."
    )

    def options(self, ingestion: IngestionResource) -> RunOptions:
        """What is left open here is as the resource has it."""
        flags: dict[str, Any] = self.model_dump(exclude={"documents", "budget"})
        if self.delete_missing is None:
            flags["delete_missing"] = ingestion.delete_missing
        return RunOptions((self.budget or ingestion.budget).budget(), **flags)


def build_ingest_job(target: IngestionTarget) -> JobDefinition:
    """Bring named documents, or the whole source, up to date. What it does shows at the assets' partitions.

    A job of an op, not of the assets: Dagster cannot run partitioned assets without selecting partitions (once the
    source was observed, it looks up the versions of the selected ones), and a selection is one contiguous range, with
    an event for each of its partitions and assets before the run starts. It runs in the process of the run: one step
    needs no process of its own, and Dagster's multiprocess executor takes a step that stops by itself for a failed one.
    """
    return _job(target, "ingest", _INGEST, _ingest_op(target, ingest_op_name(target)))


def ingest_op_name(target: IngestionTarget) -> str:
    return f"{target.identifier}_ingest_documents"


def build_rebuild_job(target: IngestionTarget) -> JobDefinition:
    """After a change of model: prepare its vectors beside the old ones, and switch when the last is ready."""
    name = f"{target.identifier}_rebuild_documents"
    config = RunConfig(ops={name: IngestionConfig(rebuild=True)})
    return _job(target, "rebuild", _REBUILD, _ingest_op(target, name), config)


def _ingest_op(target: IngestionTarget, name: str) -> OpDefinition:
    @op(name=name, pool=POOL, required_resource_keys={target.resource_key})
    def ingest_documents(context: OpExecutionContext, config: IngestionConfig) -> None:
        ingestion = ingestion_of(context, target)
        ingest(context, target, ingestion, config.options(ingestion), documents=config.documents)

    return ingest_documents


def build_checks_job(target: IngestionTarget) -> AssetJob:
    """Evaluate all checks, with the one that reads the whole collection."""
    return define_asset_job(
        f"{target.identifier}_checks",
        selection=AssetSelection.checks_for_assets(target.key("collection")),
        description="Evaluate the asset checks of the collection.",
    )


def build_prune_job(target: IngestionTarget) -> JobDefinition:
    """Remove documents that the source no longer holds, without reading any, and their partitions."""

    @op(name=f"{target.identifier}_prune_documents", pool=POOL, required_resource_keys={target.resource_key})
    def prune(context: OpExecutionContext) -> None:
        ingestion = ingestion_of(context, target)
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


def _job(
    target: IngestionTarget, name: str, description: str, operation: OpDefinition, config: RunConfig | None = None
) -> JobDefinition:
    """A job of one op, in the process of the run."""

    @job(
        name=f"{target.identifier}_{name}",
        tags=target.run_tags,
        description=description,
        config=config or RunConfig(),
        executor_def=in_process_executor,
    )
    def of_one_op() -> None:
        operation()

    return of_one_op
