"""Everything of this code location, for Dagster to load."""

from dagster import Definitions

from assets.automation import jobs, schedules, sensors
from assets.config import CONFIG
from assets.documents import document_stages, documents
from qedge_dagster.orchestration import BudgetConfig, IngestionResource, build_ingestion_checks

defs = Definitions(
    assets=[documents.source_spec, document_stages],
    asset_checks=build_ingestion_checks(documents),
    jobs=jobs,
    sensors=sensors,
    schedules=schedules,
    resources={
        "ingestion": IngestionResource(
            database=str(CONFIG.database), budget=BudgetConfig(max_duration=CONFIG.max_duration)
        )
    },
)
