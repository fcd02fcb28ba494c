"""The retrieval benchmark: its figures by hand, a run of it, and what it must show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "benchmarks" / "retrieval.py"
RUST_BOOK = REPOSITORY.parent / "shared" / "corpora" / "md" / "rust-book"


@pytest.fixture
def retrieval(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    import retrieval

    return retrieval


def run(docs: Path, queries: Path, qrels: Path, *options: str) -> dict:
    command = [sys.executable, SCRIPT, docs, queries, qrels, "--json", *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY).stdout)


def hits(*documents: str) -> list[SimpleNamespace]:
    return [SimpleNamespace(chunk=SimpleNamespace(document_id=document)) for document in documents]


def test_figures_by_hand(retrieval):
    """A document ranks where its best chunk does; the second place is worth 1 / log2(3), the eleventh nothing."""
    others = [f"x{number}" for number in range(10)]
    answers = {"second": hits("x", "x", "a", "x", "a"), "eleventh": hits(*others, "a"), "never": hits("x")}

    def figures(question: str, relevant: set[str]) -> tuple[float, float, float]:
        quality = retrieval.evaluate(lambda text, _top: answers[text], [(question, relevant)])
        return quality.ndcg_at_10, quality.recall_at_10, quality.mrr

    assert figures("second", {"a"}) == pytest.approx((0.63093, 1, 1 / 2), abs=1e-5)
    assert figures("second", {"a", "b"}) == pytest.approx((0.63093 / 1.63093, 1 / 2, 1 / 2), abs=1e-5)
    assert figures("eleventh", {"a"}) == pytest.approx((0, 0, 1 / 11))
    assert figures("never", {"a"}) == (0, 0, 0)
    quality = retrieval.evaluate(lambda text, _top: answers[text], [("second", {"a"}), ("never", {"a"})])
    assert (quality.ndcg_at_10, quality.recall_at_10, quality.mrr) == pytest.approx((0.315465, 0.5, 0.25), abs=1e-5)


def test_chunks_are_asked_for_until_there_are_ten_documents(retrieval):
    """What was found first stays first, however the deeper answers are ordered."""
    asked = []

    def search(_text: str, top: int) -> list[SimpleNamespace]:
        asked.append(top)
        return hits("a", "b") if len(asked) == 1 else hits("b", "a", *(f"x{number}" for number in range(8)))

    assert retrieval._documents(search, "text") == ["a", "b", *(f"x{number}" for number in range(8))]
    assert len(asked) == 2
    assert asked[0] < asked[1]


@pytest.mark.parametrize("chunker", ["auto", "greedy"])
def test_a_run(tmp_path, chunker):
    """Questions, judgements and documents in, three lanes out; each question finds its file."""
    docs = tmp_path / "docs"
    docs.mkdir()
    filler = "Some more words about it, so that the text is cut into several chunks. " * 30
    for name, text in {"roof": "The roof leaks when it rains.", "bread": "Bread needs flour and yeast."}.items():
        (docs / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n\n{filler}\n", "utf-8")
    (tmp_path / "queries.tsv").write_text("1\troof leaks\n2\tflour and yeast\n3\tnot judged\n", "utf-8")
    (tmp_path / "qrels.tsv").write_text("1\troof.md\t1\n1\tbread.md\t0\n2\tbread.md\t1\n", "utf-8")
    figures = run(docs, tmp_path / "queries.tsv", tmp_path / "qrels.tsv", "--chunker", chunker)
    assert (figures.pop("chunker"), figures.pop("questions")) == (chunker, 2)
    assert figures.pop("chunks") > 2
    perfect = {"ndcg_at_10": 1.0, "recall_at_10": 1.0, "mrr": 1.0}
    assert figures == {"vector": perfect, "keyword": perfect, "hybrid": perfect}


def test_greedy_windows(retrieval):
    """The chunker to compare with keeps the budget and loses no word."""
    from qedge_dagster.chunking import ChunkBudget, ChunkingOptions
    from qedge_dagster.documents import DocumentBlock, ExtractedDocument
    from tests.pipeline.support import CountingEmbedder

    tokenizer, options = CountingEmbedder.tokenizer, ChunkingOptions(max_tokens=40)
    text = "# A\n\n" + "\n\n".join(f"Paragraph {n} says that {n} is a number. It is." * (n % 4 + 1) for n in range(40))
    document = ExtractedDocument("a", "x", 1, "text/markdown", text, (DocumentBlock("heading", 2, 3, 1),))
    budget = ChunkBudget.resolve(options, CountingEmbedder().profile, tokenizer)
    drafts = retrieval.GreedyChunker(options, budget, tokenizer).chunk(document, pytest.fail)
    assert len(drafts) > 10
    assert all(text[d.char_start : d.char_end] == d.text and tokenizer.count(d.text) <= 40 for d in drafts)
    covered = {position for d in drafts for position in range(d.char_start, d.char_end)}
    assert all(text[position].isspace() for position in set(range(5, len(text))) - covered)
    ends = [d.char_end for d in drafts]
    assert ends == sorted(set(ends))


@pytest.mark.long
@pytest.mark.skipif(not RUST_BOOK.is_dir(), reason="the corpora are not beside the repository")
def test_the_rust_book():
    """Hybrid search is at least 0.91, not under the better lane, and cutting by content costs no quality."""
    arguments = RUST_BOOK, RUST_BOOK / "queries.tsv", RUST_BOOK / "qrels.tsv"
    ours, greedy = (
        {lane: figures[lane]["ndcg_at_10"] for lane in ("vector", "keyword", "hybrid")}
        for figures in (run(*arguments, "--chunker", chunker) for chunker in ("auto", "greedy"))
    )
    assert ours["hybrid"] >= 0.91
    assert ours["hybrid"] >= max(ours["vector"], ours["keyword"]) - 0.005
    assert ours["hybrid"] >= greedy["hybrid"] - 0.01
