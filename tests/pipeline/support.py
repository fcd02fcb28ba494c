"""A counting embedder without a model, and a view of a database that two ways of making it must share."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

import numpy as np

import qedge_dagster.embedding
from qedge_dagster.chunking.tokenizer import HuggingFaceTokenizer
from qedge_dagster.collection.connection import Database
from qedge_dagster.embedding.base import EmbeddingBatch
from qedge_dagster.embedding.profiles import ModelProfile
from qedge_dagster.pipeline.events import Event
from qedge_dagster.pipeline.options import IngestionBudget, IngestionOptions, RunOptions
from qedge_dagster.pipeline.pipeline import IngestionPipeline
from qedge_dagster.pipeline.results import RunResult
from qedge_dagster.sources import Source

_VOCABULARY = Path(qedge_dagster.embedding.__file__).parent / "data" / "vocab.txt"

# Row ids and timestamps aside, every column of the data, state and version tables.
_VIEWS = (
    "SELECT c.key, source_id, document_id, ordinal, text, heading_path, hex(content_hash), char_start, char_end,"
    " token_count, page, block_kind, extractor_id, media_type, hex(v.embedding)"
    " FROM chunks AS c JOIN chunks_vec AS v ON v.rowid = c._rowid ORDER BY c.key",
    "SELECT collection, source_id, document_id, hex(content_hash), hex(recipe_hash), size_bytes, extractor_id,"
    " chunk_count, status, error FROM qedge_ingest_document ORDER BY 1, 2, 3",
    "SELECT * FROM qedge_ingest_version ORDER BY 1, 2, 3",
    "SELECT * FROM qedge_ingest_staged ORDER BY 1, 2, 3",
)


@cache
def tokenizer() -> HuggingFaceTokenizer:
    return HuggingFaceTokenizer.from_file(_VOCABULARY)


class CountingEmbedder:
    """Vectors that depend on the text and the model's hash alone. `texts` is everything that was ever embedded."""

    tokenizer = tokenizer()
    batch_invariance = None

    def __init__(
        self,
        model_hash: str | None = "model-a",
        *,
        identifier: str = "fake",
        dimensions: int = 8,
        seconds_per_call: float = 0.0,
        fail_on: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.profile = ModelProfile(identifier, dimensions, 256)
        self.model_hash = model_hash
        self.texts: list[str] = []
        self.calls = 0
        self._seconds_per_call = seconds_per_call
        self._fail_on = fail_on

    def load(self) -> None:
        pass

    def embed_documents(self, texts: Sequence[str]) -> EmbeddingBatch:
        self.calls += 1
        time.sleep(self._seconds_per_call)
        if any(map(self._fail_on, texts)):
            raise RuntimeError("as told")
        self.texts.extend(texts)
        vectors = np.stack([self.embed_query(text) for text in texts])
        return EmbeddingBatch(vectors, sum(self.tokenizer.count_batch(texts)) + 2 * len(texts))

    def embed_query(self, text: str) -> np.ndarray:
        seed = hashlib.sha256(f"{self.model_hash}/{text}".encode()).digest()[:8]
        vector = np.random.default_rng(int.from_bytes(seed, "big")).normal(size=self.profile.dimensions)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


def contents(database: Path) -> list[list[tuple[object, ...]]]:
    """What the database holds, in a form that compares."""
    with closing(Database(database, read_only=True)) as opened:
        return [opened.connection.execute(view).fetchall() for view in _VIEWS]


def check_integrity(database: Path) -> None:
    """Data, vectors, full text and state agree row for row."""
    from qedge_dagster.collection.integrity import check_integrity as check

    with closing(Database(database)) as opened:
        connection = opened.connection
        assert check(opened, "chunks") == []
        connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
        off = connection.execute(
            "SELECT document_id FROM qedge_ingest_document AS d WHERE collection = 'chunks' AND chunk_count <>"
            " (SELECT count(*) FROM chunks WHERE source_id = d.source_id AND document_id = d.document_id)"
        ).fetchall()
        assert off == []
        orphans = connection.execute(
            "SELECT DISTINCT document_id FROM chunks AS c WHERE NOT EXISTS (SELECT 1 FROM qedge_ingest_document"
            " WHERE collection = 'chunks' AND source_id = c.source_id AND document_id = c.document_id)"
        ).fetchall()
        assert orphans == []


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def ingest(
    database: Path,
    source: Source,
    embedder: CountingEmbedder,
    *,
    options: IngestionOptions | None = None,
    run: RunOptions | None = None,
    budget: IngestionBudget | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> RunResult:
    """One run in a pipeline of its own, as a fresh process would make it."""
    with IngestionPipeline.open(database, embedder=embedder, options=options) as pipeline:
        return pipeline.run(source, options=run, budget=budget, on_event=on_event)


def events_of(database: Path, source: Source, embedder: CountingEmbedder) -> list[Event]:
    events: list[Event] = []
    ingest(database, source, embedder, on_event=events.append)
    return events


def prose(seed: int, paragraphs: int, *, longest: int = 60) -> list[str]:
    """Paragraphs of pronounceable words in sentences, the same for the same seed."""
    random = np.random.default_rng(seed)
    syllables = ["ba", "de", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va", "we", "xi", "yo", "zu"]
    result: list[str] = []
    for _ in range(paragraphs):
        count = int(random.integers(6, longest))
        words = ["".join(random.choice(syllables, size=int(random.integers(1, 4)))) for _ in range(count)]
        for end in range(9, count, 10):
            words[end] += "."
        result.append(" ".join(words).capitalize() + ".")
    return result
