"""What runs by itself, and the jobs that a person may launch."""

from assets.documents import documents
from qedge_dagster.orchestration import (
    build_checks_job,
    build_full_pass_schedule,
    build_ingest_job,
    build_prune_job,
    build_rebuild_job,
    build_reindex_sensor,
)

ingest_job = build_ingest_job(documents)
jobs = [ingest_job, build_prune_job(documents), build_rebuild_job(documents), build_checks_job(documents)]
sensors = [build_reindex_sensor(documents, ingest_job)]
schedules = [build_full_pass_schedule(documents, ingest_job)]
