"""What Dagster's bookkeeping costs: the CPU time of a run under Dagster, less that of the engine alone.

    python -m benchmarks.bookkeeping [--documents 60] [--rounds 5] [--json]

The same edits go through the engine, and through Dagster: with its default event log, with that of this package, and
with the Parquet artefacts as well, which are no bookkeeping but their time. The embedder is free, so that the ratio
to the engine is the worst there is. The figures are medians over the rounds, CPU time of this process, with what a run
costs before its first document divided among the documents.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stderr
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

import dagster as dg
import numpy as np

import qedge_dagster.embedding
from qedge_dagster import FolderSource, IngestionPipeline
from qedge_dagster.chunking.tokenizer import HuggingFaceTokenizer
from qedge_dagster.embedding.base import Embedder, EmbeddingBatch
from qedge_dagster.embedding.profiles import ModelProfile
from qedge_dagster.orchestration import IngestionResource, IngestionTarget, build_ingest_job
from qedge_dagster.orchestration.home import prepare_home

_ASSET_EVENTS = {dg.DagsterEventType.ASSET_OBSERVATION, dg.DagsterEventType.ASSET_MATERIALIZATION}

_PARAGRAPH = "Everything that is written here is about the number {0} and about no other, as far as anybody knows. " * 4


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """Per document, in milliseconds of CPU; `ratio` is that of the changed ones to the engine."""

    ms_per_changed: float
    ms_per_unchanged: float
    ratio: float
    events_per_changed: float
    events_per_unchanged: float


class FreeEmbedder:
    """One vector for every text."""

    profile = ModelProfile("free", 8, 256)
    model_hash = "free"
    batch_invariance = None

    def __init__(self) -> None:
        self.tokenizer = _tokenizer()

    def load(self) -> None:
        pass

    def embed_documents(self, texts: Sequence[str]) -> EmbeddingBatch:
        return EmbeddingBatch(np.tile(self.embed_query(""), (len(texts), 1)), 0)

    def embed_query(self, text: str) -> np.ndarray:  # noqa: ARG002
        return np.full(8, 8**-0.5, dtype=np.float32)


class FreeResource(IngestionResource):
    def embedder(self) -> Embedder:
        return FreeEmbedder()


class DagsterRuns:
    """Runs of the ingest job over `folder`, on an instance of its own below `root`."""

    def __init__(self, root: Path, folder: Path, *, default_storage: bool, artifacts: str) -> None:
        home = root / "home"
        home.mkdir(parents=True)
        if default_storage:
            (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
        prepare_home(home)
        target = IngestionTarget(FolderSource(folder, "*.md", source_id="documents"))
        self._job = build_ingest_job(target)
        self._resource = FreeResource(database=str(root / "documents.db"), artifacts=artifacts)
        self._run_id = ""
        self.instance = dg.DagsterInstance.from_config(str(home))

    def run(self) -> None:
        done = self._job.execute_in_process(instance=self.instance, resources={"ingestion": self._resource})
        self._run_id = done.run_id

    def events(self) -> int:
        """Asset events of the latest run."""
        return len(self.instance.all_logs(self._run_id, of_type=_ASSET_EVENTS))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="What Dagster's bookkeeping costs.")
    parser.add_argument("--documents", type=int, default=60, help="documents, each edited in each round (default: 60)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of which the median is taken (default: 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as folder,
        open(os.devnull, "w") as silence,
        redirect_stderr(silence),  # Dagster prints every event
    ):
        engine, found = measure(Path(folder), options.documents, options.rounds)
    if options.json:
        facts = {"documents": options.documents, "rounds": options.rounds, "engine_ms_per_changed": engine}
        print(json.dumps({**facts, **{name: asdict(figures) for name, figures in found.items()}}, indent=2))
        return
    print(
        f"{options.documents} documents, medians of {options.rounds} rounds; engine alone {engine:.1f} ms per document"
    )
    print(
        f"{'':10}{'ms/changed':>12}{'ms/unchanged':>14}{'x engine':>10}{'events/changed':>16}{'events/unchanged':>18}"
    )
    for name, figures in found.items():
        print(
            f"{name:10}{figures.ms_per_changed:12.1f}{figures.ms_per_unchanged:14.1f}{figures.ratio:10.1f}"
            f"{figures.events_per_changed:16.1f}{figures.events_per_unchanged:18.1f}"
        )


def measure(root: Path, documents: int, rounds: int) -> tuple[float, dict[str, Bookkeeping]]:
    """The engine's milliseconds per changed document, and what each event log adds to them."""
    folder = root / "documents"
    folder.mkdir()
    source = FolderSource(folder, "*.md", source_id="documents")
    with ExitStack() as stack:
        pipeline = stack.enter_context(IngestionPipeline.open(root / "engine.db", embedder=FreeEmbedder()))
        samples = {"engine": _Samples(lambda: pipeline.run(source), lambda: 0)}
        for name in ("default", "batched", "artefacts"):
            artifacts = str(root / "artifacts") if name == "artefacts" else ""
            runs = DagsterRuns(root / name, folder, default_storage=name == "default", artifacts=artifacts)
            stack.callback(runs.instance.dispose)
            samples[name] = _Samples(runs.run, runs.events)
        for number in range(rounds + 1):
            _write(folder, documents, number)
            for sample in samples.values():
                sample.take()
    engine, engine_unchanged, *_ = samples.pop("engine").medians(documents)
    found: dict[str, Bookkeeping] = {}
    for name, sample in samples.items():
        changed, unchanged, *events = sample.medians(documents)
        found[name] = Bookkeeping(changed - engine, unchanged - engine_unchanged, (changed - engine) / engine, *events)
    return engine, found


@dataclass(slots=True)
class _Samples:
    """Of a run over changed documents, and of another over the same: both times, and both counts of events."""

    run: Callable[[], object]
    events: Callable[[], int]
    rows: list[tuple[float, ...]] = field(default_factory=list[tuple[float, ...]])

    def take(self) -> None:
        changed, events = _milliseconds(self.run), self.events()
        unchanged, events_unchanged = _milliseconds(self.run), self.events()
        self.rows.append((changed, unchanged, events, events_unchanged))

    def medians(self, documents: int) -> list[float]:
        """Per document, without the first row: there they are new, and much is loaded for the first time."""
        return [statistics.median(column) / documents for column in zip(*self.rows[1:], strict=True)]


def _write(folder: Path, documents: int, number: int) -> None:
    """The documents, with one of their ten paragraphs as it is in this round alone."""
    for document in range(documents):
        paragraphs = [_PARAGRAPH.format(f"{document} of {part}") for part in range(10)]
        paragraphs[document % 10] = _PARAGRAPH.format(f"{document}, round {number}")
        (folder / f"{document:04}.md").write_text("# Numbers\n\n" + "\n\n".join(paragraphs) + "\n", "utf-8")


def _milliseconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return 1000 * (time.process_time() - start)


@cache
def _tokenizer() -> HuggingFaceTokenizer:
    return HuggingFaceTokenizer.from_file(Path(qedge_dagster.embedding.__file__).parent / "data" / "vocab.txt")


if __name__ == "__main__":
    main()
