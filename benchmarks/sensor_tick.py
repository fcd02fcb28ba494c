"""A tick of the sensor over unchanged documents, against a bare loop that asks for each file's size and time.

    python -m benchmarks.sensor_tick [--documents 2000] [--rounds 5] [--json]

Two ratios: (tick over all documents - tick over one) / stat loop, without what a tick costs before its first document,
such as the resources that Dagster makes for it and the model's tokenizer; and tick / (three stat loops + the start of a
process that imports as much). Medians over the rounds, wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import dagster as dg

from benchmarks.bookkeeping import FreeEmbedder, FreeResource
from qedge_dagster import FolderSource, IngestionPipeline
from qedge_dagster.orchestration import IngestionTarget, build_ingest_job, build_reindex_sensor
from qedge_dagster.orchestration.home import prepare_home
from qedge_dagster.orchestration.target import STAGES


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A tick of the sensor over unchanged documents.")
    parser.add_argument("--documents", type=int, default=2000, help="documents in the folder (default: 2000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of which the median is taken (default: 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), options.documents, options.rounds)
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):24}{value:10.2f}")


def measure(root: Path, documents: int, rounds: int) -> dict[str, float]:
    home = root / "home"
    prepare_home(home)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        ticks = {number: _tick(root / str(number), instance, number) for number in (1, documents)}
        keys = [dg.AssetKey([f"of_{documents}", stage]) for stage in ("source_documents", *STAGES)]
        names = [entry.path for entry in os.scandir(root / str(documents) / "documents")]
        timed: dict[str, Callable[[], object]] = {
            "one": ticks[1],
            "all": ticks[documents],
            "stat": lambda: [os.stat(name) for name in names],
            "start": lambda: subprocess.run([sys.executable, "-c", "import qedge_dagster.orchestration"], check=True),
        }
        samples: dict[str, list[float]] = {name: [] for name in timed}
        for _ in range(rounds + 1):
            for name, run in timed.items():
                start = time.perf_counter()
                run()
                samples[name].append(1000 * (time.perf_counter() - start))
        runs = instance.get_runs_count()
        events = sum(instance.has_asset_key(key) for key in keys)
    one, every, stat, start = (statistics.median(column[1:]) for column in samples.values())  # the first one loads much
    return {
        "documents": documents,
        "rounds": rounds,
        "stat_loop_ms": stat,
        "tick_of_one_ms": one,
        "tick_ms": every,
        "process_start_ms": start,
        "ratio_per_document": (every - one) / stat,
        "ratio_with_start": every / (3 * stat + start),
        "runs": runs,
        "assets_with_events": events,
    }


def _tick(root: Path, instance: dg.DagsterInstance, documents: int) -> Callable[[], object]:
    """A tick over so many documents that are in the database already."""
    folder = root / "documents"
    folder.mkdir(parents=True)
    for number in range(documents):
        (folder / f"{number:06}.md").write_text(f"# Number {number}\n", "utf-8")
    target = IngestionTarget(FolderSource(folder, source_id=f"{documents} documents"), f"of_{documents}")
    database = root / "documents.db"
    with IngestionPipeline.open(database, collection=target.collection, embedder=FreeEmbedder()) as pipeline:
        pipeline.run(target.source)
    sensor = build_reindex_sensor(target, build_ingest_job(target))

    def tick() -> str:
        resources = {"ingestion": FreeResource(database=str(database))}
        with dg.build_sensor_context(instance, resources=resources) as context:
            message = sensor.evaluate_tick(context).skip_message
        assert message is not None  # nothing is asked for
        return message

    return tick


if __name__ == "__main__":
    main()
