"""What Dagster's bookkeeping costs: the CPU time of a run under Dagster, less that of the engine alone.

The same edits go through the engine, and through Dagster: with the event log of this package, with the Parquet
artefacts as well, which are no bookkeeping but their time, and at full size with Dagster's default event log. The
embedder is free. What a run costs before its first document is divided among the documents.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, redirect_stderr
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import dagster as dg
import numpy as np

import qedge_dagster.embedding
from benchmarks.figures import Figure, Scale, Target
from qedge_dagster import FolderSource, IngestionPipeline
from qedge_dagster.chunking.tokenizer import HuggingFaceTokenizer
from qedge_dagster.embedding.base import Embedder, EmbeddingBatch
from qedge_dagster.embedding.profiles import ModelProfile
from qedge_dagster.orchestration import IngestionResource, IngestionTarget, build_ingest_job
from qedge_dagster.orchestration.home import prepare_home

_ASSET_EVENTS = {dg.DagsterEventType.ASSET_OBSERVATION, dg.DagsterEventType.ASSET_MATERIALIZATION}

_PARAGRAPH = "Everything that is written here is about the number {0} and about no other, as far as anybody knows. " * 4


@dataclass(frozen=True, slots=True)
class Run:
    """Of a run over changed documents, and of another over the same: milliseconds of CPU and events, per document.

    `per_second` are changed documents by the clock.
    """

    changed: float
    unchanged: float
    events_changed: float
    events_unchanged: float
    per_second: float


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


def measure(scale: Scale) -> Iterator[Figure]:
    documents = 1000 if scale.full else 150
    with tempfile.TemporaryDirectory() as folder:
        runs = compare(Path(folder), documents, scale.rounds, default_log=scale.full)
    yield from figures(runs, documents)


def figures(runs: dict[str, Run], documents: int) -> Iterator[Figure]:
    engine, dagster, artifacts = runs["engine"], runs["dagster"], runs["artefacts"]
    unit, less = "ms of CPU", "a run under Dagster less the engine alone"
    yield Figure(
        f"Dagster: one of {documents} changed documents",
        dagster.changed - engine.changed,
        unit,
        against=less,
        target=Target("at most", 12),
    )
    yield Figure(
        "Dagster: events of a changed document", dagster.events_changed, "events", target=Target("at least", 5)
    )
    yield Figure(
        "Dagster: events of an unchanged document", dagster.events_unchanged, "events", target=Target("at most", 0)
    )
    yield Figure(
        f"Dagster: a run over {documents} unchanged documents",
        documents * (dagster.unchanged - engine.unchanged),
        unit,
        against=f"{less}; that of one is as much",
    )
    yield Figure(
        f"Dagster: a run over {documents} changed documents",
        dagster.per_second,
        "documents/s",
        target=Target("at least", 60),
    )
    yield Figure("Dagster: the same, the engine alone", engine.per_second, "documents/s")
    yield Figure("Dagster: Parquet artefacts of a document", artifacts.changed - dagster.changed, unit)
    if "default log" in runs:
        yield Figure(
            "Dagster: a changed document, default event log",
            runs["default log"].changed - engine.changed,
            unit,
            against=less,
        )


def compare(root: Path, documents: int, rounds: int, *, default_log: bool = False) -> dict[str, Run]:
    """The engine alone and runs under Dagster, in turns below `root`; medians over the rounds."""
    folder = root / "documents"
    folder.mkdir()
    source = FolderSource(folder, "*.md", source_id="documents")
    with ExitStack() as stack:
        stack.enter_context(redirect_stderr(stack.enter_context(open(os.devnull, "w"))))  # Dagster prints every event
        pipeline = stack.enter_context(IngestionPipeline.open(root / "engine.db", embedder=FreeEmbedder()))
        samples = {"engine": _Samples(lambda: pipeline.run(source), lambda: 0)}
        for name in ("dagster", "artefacts", *(["default log"] if default_log else [])):
            artifacts = str(root / "artifacts") if name == "artefacts" else ""
            runs = DagsterRuns(root / name, folder, default_storage=name == "default log", artifacts=artifacts)
            stack.callback(runs.instance.dispose)
            samples[name] = _Samples(runs.run, runs.events)
        for number in range(rounds + 1):
            _write(folder, documents, number)
            for sample in samples.values():
                sample.take()
    return {name: sample.median(documents) for name, sample in samples.items()}


@dataclass(slots=True)
class _Samples:
    """Of a run over changed documents, and of another over the same: both times, and both counts of events."""

    run: Callable[[], object]
    events: Callable[[], int]
    rows: list[tuple[float, ...]] = field(default_factory=list[tuple[float, ...]])

    def take(self) -> None:
        start = time.perf_counter()
        changed = _milliseconds(self.run)
        seconds, events = time.perf_counter() - start, self.events()
        unchanged = _milliseconds(self.run)
        self.rows.append((changed, unchanged, events, self.events(), seconds))

    def median(self, documents: int) -> Run:
        """Without the first row: there they are new, and much is loaded for the first time."""
        changed, unchanged, events, events_unchanged, seconds = (
            statistics.median(column) / documents for column in zip(*self.rows[1:], strict=True)
        )
        return Run(changed, unchanged, events, events_unchanged, 1 / seconds)


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
