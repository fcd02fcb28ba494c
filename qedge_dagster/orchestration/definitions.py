"""All that belongs to one target, as Dagster takes it."""

from collections.abc import Iterator

from dagster import (
    AssetExecutionContext,
    AssetsDefinition,
    DefaultScheduleStatus,
    DefaultSensorStatus,
    Definitions,
)

from qedge_dagster.orchestration.assets import ingestion_assets
from qedge_dagster.orchestration.checks import build_ingestion_checks
from qedge_dagster.orchestration.execution import ingest_partitions
from qedge_dagster.orchestration.jobs import build_checks_job, build_ingest_job, build_prune_job, build_rebuild_job
from qedge_dagster.orchestration.resource import IngestionResource, ingestion_of
from qedge_dagster.orchestration.schedule import build_full_pass_schedule
from qedge_dagster.orchestration.sensor import build_reindex_sensor
from qedge_dagster.orchestration.target import IngestionTarget

__all__ = ["build_ingestion_definitions"]


def build_ingestion_definitions(
    target: IngestionTarget,
    ingestion: IngestionResource,
    *,
    schedule: str | None = "0 3 * * *",
    execution_timezone: str | None = None,
    sensor_interval: int = 30,
    automatic: bool = True,
) -> Definitions:
    """Assets, checks, jobs, sensor and schedule of a target, with its resource under the target's key.

    `schedule` is the cron expression of the full pass, None for none; `sensor_interval` is in seconds; `automatic` says
    whether sensor and schedule run from the start or are to be switched on in the UI. Definitions of several targets
    can be put together with `Definitions.merge`, if their resource keys differ.
    """
    ingest_job = build_ingest_job(target)
    sensor = build_reindex_sensor(
        target,
        ingest_job,
        minimum_interval_seconds=sensor_interval,
        default_status=DefaultSensorStatus.RUNNING if automatic else DefaultSensorStatus.STOPPED,
    )
    status = DefaultScheduleStatus.RUNNING if automatic else DefaultScheduleStatus.STOPPED
    schedules = [
        build_full_pass_schedule(
            target, ingest_job, cron_schedule=cron, execution_timezone=execution_timezone, default_status=status
        )
        for cron in ([schedule] if schedule else [])
    ]
    return Definitions(
        assets=[target.source_spec, _stages(target)],
        asset_checks=build_ingestion_checks(target),
        jobs=[ingest_job, build_prune_job(target), build_rebuild_job(target), build_checks_job(target)],
        sensors=[sensor],
        schedules=schedules,
        resources={target.resource_key: ingestion},
    )


def _stages(target: IngestionTarget) -> AssetsDefinition:
    @ingestion_assets(target, required_resource_keys={target.resource_key})
    def stages(context: AssetExecutionContext) -> Iterator[None]:
        yield from ingest_partitions(context, target, ingestion_of(context.op_execution_context, target))

    return stages
