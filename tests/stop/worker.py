"""The ingest job over `docs` and `x.db` in the folder QEDGE_TEST_ROOT, for the run worker of Dagster."""

import os
from pathlib import Path

import dagster as dg

from qedge_dagster.orchestration import IngestionResource, IngestionTarget, build_ingest_job
from qedge_dagster.sources import FolderSource
from tests.stop.marked import mark_phases
from tests.stop.scene import FTS_TOKENIZER, SOURCE


def ingest_job() -> dg.JobDefinition:
    mark_phases()
    root = Path(os.environ["QEDGE_TEST_ROOT"])
    target = IngestionTarget(FolderSource(root / "docs", source_id=SOURCE))
    job = build_ingest_job(target)
    resource = IngestionResource(database=str(root / "x.db"), fts_tokenizer=FTS_TOKENIZER)
    return dg.Definitions(jobs=[job], resources={target.resource_key: resource}).resolve_job_def(job.name)
