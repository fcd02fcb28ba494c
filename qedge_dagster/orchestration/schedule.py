"""The schedule of the pass that reads everything."""

from __future__ import annotations

from dagster import DefaultScheduleStatus, JobDefinition, ScheduleDefinition

from qedge_dagster.orchestration.target import IngestionTarget

__all__ = ["build_full_pass_schedule"]


def build_full_pass_schedule(
    target: IngestionTarget,
    job: JobDefinition,
    *,
    cron_schedule: str = "0 3 * * *",
    execution_timezone: str | None = None,
    default_status: DefaultScheduleStatus = DefaultScheduleStatus.RUNNING,
) -> ScheduleDefinition:
    """Runs `job` (that of `build_ingest_job`) over all documents: each is hashed, which finds the edits that kept size
    and modification time, failed ones are tried again, and those that are gone are removed."""
    return ScheduleDefinition(
        name=f"{target.identifier}_full_pass",
        job=job,
        cron_schedule=cron_schedule,
        execution_timezone=execution_timezone,
        default_status=default_status,
        description="Reads every document: finds edits that kept size and time, and removes what is gone.",
    )
