"""The documents, stage by stage."""

from collections.abc import Iterator

from dagster import AssetExecutionContext

from assets.config import CONFIG
from qedge_dagster import FolderSource
from qedge_dagster.orchestration import IngestionResource, IngestionTarget, ingest_partitions, ingestion_assets

# A source's id is part of what is stored: it must not depend on where this folder lies.
documents = IngestionTarget(FolderSource(CONFIG.folder, CONFIG.pattern, source_id="documents"), CONFIG.collection)


@ingestion_assets(documents)
def document_stages(context: AssetExecutionContext, ingestion: IngestionResource) -> Iterator[None]:
    yield from ingest_partitions(context, documents, ingestion)
