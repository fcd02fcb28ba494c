"""Dagster: the stages as assets, documents as partitions, and an index that keeps itself fresh."""

from qedge_dagster.orchestration.assets import POOL, ingestion_assets
from qedge_dagster.orchestration.checks import build_ingestion_checks
from qedge_dagster.orchestration.component import DocumentIngestionComponent
from qedge_dagster.orchestration.definitions import build_ingestion_definitions
from qedge_dagster.orchestration.execution import ingest_partitions
from qedge_dagster.orchestration.io_manager import IngestionIOManager
from qedge_dagster.orchestration.jobs import (
    IngestionConfig,
    build_checks_job,
    build_ingest_job,
    build_prune_job,
    build_rebuild_job,
)
from qedge_dagster.orchestration.partitions import document_id_of, partition_key_of
from qedge_dagster.orchestration.resource import BudgetConfig, ChunkingConfig, IngestionResource
from qedge_dagster.orchestration.schedule import build_full_pass_schedule
from qedge_dagster.orchestration.sensor import build_reindex_sensor
from qedge_dagster.orchestration.settings import IngestionSettings, SourceSettings
from qedge_dagster.orchestration.target import IngestionTarget

__all__ = [
    "POOL",
    "BudgetConfig",
    "ChunkingConfig",
    "DocumentIngestionComponent",
    "IngestionConfig",
    "IngestionIOManager",
    "IngestionResource",
    "IngestionSettings",
    "IngestionTarget",
    "SourceSettings",
    "build_checks_job",
    "build_full_pass_schedule",
    "build_ingest_job",
    "build_ingestion_checks",
    "build_ingestion_definitions",
    "build_prune_job",
    "build_rebuild_job",
    "build_reindex_sensor",
    "document_id_of",
    "ingest_partitions",
    "ingestion_assets",
    "partition_key_of",
]
