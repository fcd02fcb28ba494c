"""How well questions find their document, by vector, keyword and hybrid search.

    python benchmarks/retrieval.py DOCS QUERIES QRELS [--pattern "*.md"] [--chunker greedy] [--json]

QUERIES has a line `id<TAB>question` each, QRELS `id<TAB>file<TAB>relevance`, the file as its path below DOCS and any
relevance above 0 as relevant. A document ranks where its best chunk does. The figures are means over the questions, the
quality measures at 10 documents.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeAlias

from greedy import GreedyChunker

from qedge_dagster import Collection, FolderSource, Hit, IngestionPipeline
from qedge_dagster.embedding import default_embedder
from qedge_dagster.recipe import Recipe

Search: TypeAlias = Callable[[str, int], list[Hit]]

_CUTOFF = 10

# Chunks to ask for, until they are of ten documents.
_TOPS = (30, 100, 400)


@dataclass(frozen=True, slots=True)
class Quality:
    ndcg_at_10: float
    recall_at_10: float
    mrr: float


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="How well questions find their document.")
    parser.add_argument("docs", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("qrels", type=Path)
    parser.add_argument("--pattern", default="*.md", help="which files of DOCS (default: *.md)")
    parser.add_argument("--chunker", choices=("auto", "greedy"), default="auto", help="greedy: for comparison")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)

    queries = {key: question for key, question, *_ in _read_table(options.queries)}
    relevant: dict[str, set[str]] = {}
    for key, file, relevance, *_ in _read_table(options.qrels):
        if float(relevance) > 0:
            relevant.setdefault(key, set()).add(file)
    judged = [(queries[key], files) for key, files in relevant.items() if key in queries]
    if not judged:
        parser.error("no question of QUERIES is judged in QRELS")

    embedder = default_embedder()
    with (
        tempfile.TemporaryDirectory() as folder,
        IngestionPipeline.open(Path(folder, "retrieval.db"), embedder=embedder) as pipeline,
    ):
        if options.chunker == "greedy":
            stages = pipeline.stages
            assert embedder.tokenizer is not None
            chunker = GreedyChunker(pipeline.options.chunking, stages.budget, embedder.tokenizer)
            pipeline.stages = replace(
                stages, chunker=chunker, recipe=Recipe(embedder, chunker, stages.options.distance)
            )
        result = pipeline.run(FolderSource(options.docs, options.pattern))
        if result.outcome != "completed":
            raise SystemExit(f"the ingest {result.outcome}: {result.failure or result.suspend_reason}")
        chunks = pipeline.collection.chunk_count()
        lanes = {name: evaluate(search, judged) for name, search in _lanes(pipeline.collection).items()}
    if options.json:
        facts = {"chunker": options.chunker, "questions": len(judged), "chunks": chunks}
        print(json.dumps({**facts, **{name: asdict(quality) for name, quality in lanes.items()}}, indent=2))
        return
    print(f"{len(judged)} questions, {chunks} chunks, chunker {options.chunker}")
    print(f"{'':10}{'nDCG@10':>10}{'recall@10':>11}{'MRR':>8}")
    for name, quality in lanes.items():
        print(f"{name:10}{quality.ndcg_at_10:10.3f}{quality.recall_at_10:11.3f}{quality.mrr:8.3f}")


def evaluate(search: Search, judged: Iterable[tuple[str, set[str]]]) -> Quality:
    figures = [_figures(_documents(search, question), files) for question, files in judged]
    return Quality(*(sum(column) / len(figures) for column in zip(*figures, strict=True)))


def _lanes(collection: Collection) -> dict[str, Search]:
    return {
        "vector": lambda question, top: collection.search(question, top=top),
        "keyword": lambda question, top: collection.keyword_search(question, top=top),
        "hybrid": lambda question, top: collection.hybrid_search(question, top=top),
    }


def _documents(search: Search, question: str) -> list[str]:
    """Documents in the order in which a reader meets them who asks for more when ten were not among the hits."""
    met: dict[str, None] = {}
    for top in _TOPS:
        met.update(dict.fromkeys(hit.chunk.document_id for hit in search(question, top)))
        if len(met) >= _CUTOFF:
            break
    return list(met)


def _figures(ranking: Sequence[str], relevant: set[str]) -> tuple[float, float, float]:
    """nDCG@10, recall@10 and the reciprocal rank of the first relevant document, 0 if there is none."""
    ranks = [rank for rank, document in enumerate(ranking, start=1) if document in relevant]
    within = [rank for rank in ranks if rank <= _CUTOFF]
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(relevant), _CUTOFF) + 1))
    gain = sum(1 / math.log2(rank + 1) for rank in within)
    return gain / ideal, len(within) / len(relevant), 1 / ranks[0] if ranks else 0.0


def _read_table(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text("utf-8").split("\n") if line.strip()]


if __name__ == "__main__":
    main()
