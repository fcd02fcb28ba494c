"""A tick of the sensor over unchanged documents, against a bare loop that asks for each file's size and time.

The names are known to the loop. The tick has to list the folder, to make ids of the names in their order, to read what
is recorded of each document and to hold the two against each other; then it looks through the partitions. The figures
are CPU time: everything is in the memory of the operating system.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg

from benchmarks.bookkeeping import FreeEmbedder, FreeResource
from benchmarks.figures import Figure, Scale, Target, processor
from qedge_dagster import FolderSource, IngestionPipeline
from qedge_dagster.orchestration import IngestionTarget, build_ingest_job, build_reindex_sensor
from qedge_dagster.orchestration.home import prepare_home

_DOCUMENTS = 20_000


def measure(scale: Scale) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        yield from figures(Path(folder), _DOCUMENTS, scale.rounds)


def figures(root: Path, documents: int, rounds: int) -> Iterator[Figure]:
    """Of that many documents, which are written below `root`."""
    prepare_home(root / "home")
    with dg.DagsterInstance.from_config(str(root / "home")) as instance:
        of_one, of_all = (prepare_tick(root / str(number), instance, number) for number in (1, documents))
        source = FolderSource(root / str(documents) / "documents")
        names = [entry.path for entry in os.scandir(source.path)]
        contenders = (
            lambda: [os.stat(name) for name in names],
            of_all,
            of_one,
            lambda: sum(1 for _ in source.items()),
            lambda: [entry.stat() for entry in os.scandir(source.path)],
        )
        limit, every, one, listed, scanned = (1000 * seconds for seconds in processor(contenders, rounds))

    def figure(name: str, ours: float, target: Target | None = None) -> Figure:
        return Figure(f"Sensor: {name}", ours, "ms of CPU", limit, f"os.stat of {documents:,} names", target)

    yield figure(f"a tick over {documents:,} unchanged documents", every, Target("at most", 3))
    yield figure("a tick over one", one)
    yield figure("the folder source's listing alone", listed)
    yield figure("os.scandir and stat alone", scanned)


def prepare_tick(root: Path, instance: dg.DagsterInstance, documents: int) -> Callable[[], str]:
    """A tick over so many documents that are in the database already. It returns why it asks for nothing."""
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
