"""Asset checks of a collection."""

from contextlib import closing

from dagster import (
    AssetCheckEvaluation,
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    OpExecutionContext,
    asset_check,
)

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.findings import Finding
from qedge_dagster.collection.integrity import check_integrity
from qedge_dagster.orchestration.resource import IngestionResource, ingestion_of
from qedge_dagster.orchestration.target import IngestionTarget
from qedge_dagster.pipeline.pipeline import IngestionPipeline
from qedge_dagster.state import StateStore

__all__ = ["build_ingestion_checks", "log_checks"]

_FAILURES_NAMED = 20


def build_ingestion_checks(target: IngestionTarget) -> list[AssetChecksDefinition]:
    """`no_failed_documents`, `nothing_stale` and `index_integrity` of the collection, to be run on their own. A run
    that changes something evaluates the first two at its end; the third reads everything, and is for a schedule."""

    needs = {target.resource_key}

    @asset_check(
        asset=target.key("collection"),
        name="no_failed_documents",
        description="No document has failed.",
        required_resource_keys=needs,
    )
    def no_failed_documents(context: AssetCheckExecutionContext) -> AssetCheckResult:
        ingestion = ingestion_of(context, target)
        with ingestion.state(target.collection) as state:
            return _no_failed_documents(state, target)

    @asset_check(
        asset=target.key("collection"),
        name="nothing_stale",
        description="No chunks are of an older state of their document, of a document that is gone, of other options"
        " or of another model. Says nothing about files that no run has read since they changed.",
        required_resource_keys=needs,
    )
    def nothing_stale(context: AssetCheckExecutionContext) -> AssetCheckResult:
        ingestion = ingestion_of(context, target)
        with ingestion.state(target.collection) as state, closing(ingestion.open(target.collection)) as pipeline:
            return _nothing_stale(state, pipeline)

    @asset_check(
        asset=target.key("collection"),
        name="index_integrity",
        description="The file is sound; chunks, hashes, vectors, full text and state agree row for row. What"
        " `qedge doctor` finds in a collection, and `qedge doctor --repair` mends.",
        required_resource_keys=needs,
    )
    def index_integrity(context: AssetCheckExecutionContext) -> AssetCheckResult:
        ingestion = ingestion_of(context, target)
        with ingestion.state(target.collection) as state:
            if state is None:
                return _nothing_yet()
        with closing(Database(ingestion.database, read_only=True)) as database:
            findings = check_integrity(database, target.collection)
        return AssetCheckResult(passed=not findings, metadata=_integrity_metadata(findings))

    return [no_failed_documents, nothing_stale, index_integrity]


def log_checks(
    context: OpExecutionContext, target: IngestionTarget, ingestion: IngestionResource, pipeline: IngestionPipeline
) -> None:
    """Evaluate the checks that cost little. Logged from within the op: a step of their own would be skipped, as the
    stages yield no output for it to wait for."""
    with ingestion.state(target.collection) as state:
        results = {
            "no_failed_documents": _no_failed_documents(state, target),
            "nothing_stale": _nothing_stale(state, pipeline),
        }
    for name, result in results.items():
        evaluation = AssetCheckEvaluation(
            target.key("collection"),
            name,
            result.passed,
            metadata=result.metadata,
            severity=result.severity,
            description=result.description,
        )
        context.log_event(evaluation)  # pyright: ignore[reportArgumentType]  # taken, though its type is not named


def _no_failed_documents(state: StateStore | None, target: IngestionTarget) -> AssetCheckResult:
    if state is None:
        return _nothing_yet()
    count, errors = state.failed(target.source.source_id, _FAILURES_NAMED)
    return AssetCheckResult(
        passed=not count, severity=AssetCheckSeverity.WARN, metadata={"failed": count, "errors": errors}
    )


def _integrity_metadata(findings: list[Finding]) -> dict[str, list[str]]:
    problems = [finding.message for finding in findings]
    return {"problems": problems, "remedies": [finding.remedy for finding in findings]} if findings else {}


def _nothing_stale(state: StateStore | None, pipeline: IngestionPipeline) -> AssetCheckResult:
    if state is None:
        return _nothing_yet()
    recorded, model = state.model(), pipeline.stages.model()
    if recorded is not None and recorded.identity != model.identity:
        description = (
            f"The collection was built with {recorded.profile_id}, the model is now {model.profile_id}:"
            " run the rebuild job, or go back to the old model."
        )
        return AssetCheckResult(passed=False, description=description, metadata={"code": 6012})
    counts = {name: count for name, count in pipeline.counts().items() if name in ("stale", "recipe_stale")}
    return AssetCheckResult(passed=not any(counts.values()), severity=AssetCheckSeverity.WARN, metadata=counts)


def _nothing_yet() -> AssetCheckResult:
    return AssetCheckResult(passed=True, description="There is no such collection yet.")
