"""What the processes of `test_canary` do: runs over its documents, with every logger at its most talkative."""

import json
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import dagster as dg

from qedge_dagster import FolderSource, IngestionOptions, IngestionPipeline, RunOptions
from qedge_dagster.embedding.base import Embedder
from qedge_dagster.extractors import Extractor, default_extractors
from qedge_dagster.orchestration import (
    IngestionResource,
    IngestionTarget,
    build_ingest_job,
    build_ingestion_checks,
    ingest_partitions,
    ingestion_assets,
)
from qedge_dagster.orchestration.resource import ChunkingConfig
from tests.canary.documents import CHUNKING, QuotingEmbedder, QuotingExtractor, quoting_chunker, refuse_rows


def extractors() -> Sequence[Extractor]:
    return [QuotingExtractor(), *(extractor for extractor in default_extractors() if extractor.id != "text")]


class Ingestion(IngestionResource):
    def embedder(self) -> Embedder:
        return QuotingEmbedder()

    def extractors(self) -> Sequence[Extractor]:
        return extractors()


def engine(root: Path) -> None:
    """A run, and one that its first failure ends. The failures of the first are written to a file."""
    options = IngestionOptions(chunking=CHUNKING)
    pipeline = IngestionPipeline.open(
        root / "q.db", embedder=QuotingEmbedder(), extractors=extractors(), options=options
    )
    source = FolderSource(root / "docs", source_id="s")
    with closing(pipeline):
        refuse_rows(pipeline, root / "q.db", "chunks")
        result = pipeline.run(source, on_event=lambda event: logging.debug("%s", type(event).__name__))
        for name in ("broken.pdf", "embedder.txt", "extractor.txt", "writing.txt"):
            one = FolderSource(root / "docs", name, source_id="t")
            assert pipeline.run(one, options=RunOptions(fail_fast=True, force=True)).outcome == "failed"
    outcomes = {document.document_id: document.failure and document.failure.code for document in result.documents}
    (root / "outcomes.json").write_text(json.dumps(outcomes), "utf-8")
    print(result.warnings, result.failure, [str(document.failure) for document in result.documents])


def dagster(root: Path) -> None:
    """A run of the job, and one for the partitions that it has made."""
    target = IngestionTarget(FolderSource(root / "docs", source_id="s"), "notes")
    ingestion = Ingestion(
        database=str(root / "q.db"), artifacts="", previews=False, chunking=ChunkingConfig(overflow="throw")
    )

    @ingestion_assets(target)
    def notes(context: dg.AssetExecutionContext, ingestion: Ingestion) -> Iterator[None]:
        yield from ingest_partitions(context, target, ingestion)

    definitions = dg.Definitions(
        assets=[notes, target.source_spec],
        asset_checks=build_ingestion_checks(target),
        jobs=[build_ingest_job(target), dg.define_asset_job("partitions", selection=[notes])],
        resources={"ingestion": ingestion},
    )
    with closing(ingestion.open("notes")) as pipeline:
        refuse_rows(pipeline, root / "q.db", "notes")
    with dg.DagsterInstance.get() as instance:
        job = definitions.resolve_job_def("notes_ingest")
        assert job.execute_in_process(instance=instance, raise_on_error=False).success
        keys = sorted(instance.get_dynamic_partitions(target.partitions_name))
        tags = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}
        job = definitions.resolve_job_def("partitions")
        assert job.execute_in_process(instance=instance, raise_on_error=False, tags=tags).success


def main() -> None:
    logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    warnings.simplefilter("always")
    logging.captureWarnings(True)
    runs = {"engine": engine, "dagster": dagster}
    with quoting_chunker():
        runs[sys.argv[1]](Path(sys.argv[2]))


if __name__ == "__main__":
    main()
