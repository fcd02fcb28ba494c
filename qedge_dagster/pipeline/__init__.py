"""The engine: a source in, events out."""

from qedge_dagster.pipeline.options import IngestionBudget, IngestionOptions, RunOptions
from qedge_dagster.pipeline.pipeline import IngestionPipeline
from qedge_dagster.pipeline.results import DocumentResult, RunResult

__all__ = ["DocumentResult", "IngestionBudget", "IngestionOptions", "IngestionPipeline", "RunOptions", "RunResult"]
