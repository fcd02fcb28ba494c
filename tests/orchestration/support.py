"""A code location over a folder and a counting embedder, on a real instance of its own."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.integrity import check_integrity
from qedge_dagster.embedding.base import Embedder
from qedge_dagster.orchestration import (
    BudgetConfig,
    IngestionResource,
    IngestionTarget,
    build_checks_job,
    build_ingest_job,
    build_ingestion_checks,
    build_prune_job,
    build_rebuild_job,
    ingest_partitions,
    ingestion_assets,
    partition_key_of,
)
from qedge_dagster.orchestration.resource import PdfConfig
from qedge_dagster.sources import FolderSource
from tests.pipeline.support import CountingEmbedder

BATCHED = {"event_log_storage": {"module": "qedge_dagster.orchestration.event_log", "class": "BatchedEventLogStorage"}}
STAGES = ("extracted_documents", "document_chunks", "chunk_embeddings", "collection")


class CountingResource(IngestionResource):
    """Embeds with whatever `EMBEDDERS` holds for its database."""

    def embedder(self) -> Embedder:
        return EMBEDDERS[self.database]


EMBEDDERS: dict[str, CountingEmbedder] = {}


@dataclass
class Location:
    """A folder, a database, and their Dagster definitions."""

    root: Path
    instance: dg.DagsterInstance
    budget: BudgetConfig
    executor: dg.ExecutorDefinition | None = None
    delete_missing: bool = True
    page_budget: float = 20.0

    def __post_init__(self) -> None:
        self.folder = self.root / "docs"
        self.folder.mkdir(exist_ok=True)
        self.database = self.root / "t.db"
        self.embedder = EMBEDDERS.setdefault(str(self.database), CountingEmbedder())
        self.target = target = IngestionTarget(FolderSource(self.folder, source_id="docs"), "notes")

        @ingestion_assets(target)
        def notes(context: dg.AssetExecutionContext, ingestion: IngestionResource) -> Iterator[None]:
            yield from ingest_partitions(context, target, ingestion)

        self.definitions = dg.Definitions(
            assets=[notes, target.source_spec],
            asset_checks=build_ingestion_checks(target),
            jobs=[
                dg.define_asset_job("notes_partitions", selection=[notes]),
                build_ingest_job(target),
                build_checks_job(target),
                build_rebuild_job(target),
                build_prune_job(target),
            ],
            resources={"ingestion": self.resource()},
            executor=self.executor,
        )

    def resource(self) -> CountingResource:
        return CountingResource(
            database=str(self.database),
            budget=self.budget,
            delete_missing=self.delete_missing,
            lock_wait=0.5,
            pdf=PdfConfig(page_budget=self.page_budget),
        )

    def run(self, job: str = "notes_ingest", **settings: Any) -> dg.ExecuteInProcessResult:
        documents = settings.pop("documents", None)
        if documents is not None:
            settings["run_config"] = {"ops": {"notes_ingest_documents": {"config": {"documents": documents}}}}
        return self.definitions.resolve_job_def(job).execute_in_process(
            instance=self.instance, raise_on_error=False, **settings
        )

    def run_range(self, first: str, last: str) -> dg.ExecuteInProcessResult:
        keys = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
        return self.run("notes_partitions", tags=keys)

    def problems(self) -> list[str]:
        with closing(Database(self.database)) as opened:
            return [finding.message for finding in check_integrity(opened, "notes")]

    def partitions(self) -> list[str]:
        return sorted(self.instance.get_dynamic_partitions(self.target.partitions_name))

    def events(self, run_id: str) -> list[tuple[str, str, str]]:
        """(kind, last part of the asset's key, partition) of each asset event of a run."""
        kinds = {"ASSET_MATERIALIZATION": "materialization", "ASSET_OBSERVATION": "observation"}
        found: list[tuple[str, str, str]] = []
        for entry in self.instance.all_logs(run_id):
            event = entry.dagster_event
            if event is not None and event.event_type_value in kinds:
                assert event.asset_key is not None
                found.append((kinds[event.event_type_value], event.asset_key.path[-1], event.partition or ""))
        return found

    def materialization(self, stage: str, document_id: str) -> dg.AssetMaterialization:
        """The newest one of a stage and document."""
        records = self.instance.fetch_materializations(
            dg.AssetRecordsFilter(
                asset_key=dg.AssetKey(["notes", stage]), asset_partitions=[partition_key_of(document_id)]
            ),
            limit=1,
        ).records
        materialization = records[0].asset_materialization
        assert materialization is not None
        return materialization
