"""An asset that is made of the collection: Dagster shows it below the stages, and as out of date when they change."""

import os
from collections import Counter
from pathlib import Path

from dagster import AssetKey, MaterializeResult, MetadataValue, TableRecord, asset

from qedge_dagster import Collection

# As `database` in handbook/defs.yaml.
DATABASE = Path(os.environ.get("HANDBOOK_DATABASE", Path(__file__).parents[2] / "handbook.db"))


@asset(deps=[AssetKey(["handbook", "collection"])], group_name="handbook")
def chunks_per_document() -> MaterializeResult[None]:
    """How many chunks each document has: one with very few or very many is worth a look."""
    with Collection.open(DATABASE, "handbook") as collection:
        counts = Counter(chunk.document_id for chunk in collection.chunks())
    rows = [TableRecord({"document": name, "chunks": count}) for name, count in sorted(counts.items())]
    return MaterializeResult(
        metadata={"documents": len(counts), "chunks": counts.total(), "table": MetadataValue.table(rows)}
    )
