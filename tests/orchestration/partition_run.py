"""What the processes of `test_process` do: one run for a range of partitions, with a slow embedder."""

import os
from pathlib import Path

import dagster as dg

from qedge_dagster.orchestration import BudgetConfig
from tests.orchestration.support import EMBEDDERS, Location
from tests.pipeline.support import CountingEmbedder


def make_job() -> dg.JobDefinition:
    """Made once more in each process of a step, so all it needs is in the environment."""
    root = Path(os.environ["QEDGE_TEST_ROOT"])
    EMBEDDERS[str(root / "t.db")] = CountingEmbedder(seconds_per_call=0.2)
    executors = {"in_process": dg.in_process_executor, "multiprocess": dg.multiprocess_executor}
    executor = executors[os.environ["QEDGE_TEST_EXECUTOR"]]
    location = Location(root, dg.DagsterInstance.get(), BudgetConfig(), executor)
    return location.definitions.resolve_job_def("notes_partitions")


def main(first: str, last: str) -> None:
    tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
    with dg.DagsterInstance.get() as instance:
        dg.execute_job(dg.reconstructable(make_job), instance, tags=tags, raise_on_error=False)
