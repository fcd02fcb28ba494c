"""One document's failure is its own: recorded with its code, its earlier chunks kept, the run goes on."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from qedge_dagster import FolderSource, IngestionOptions, ItemsSource, QedgeError, RunOptions, RunResult, SourceItem
from qedge_dagster.chunking.base import ChunkDraft
from qedge_dagster.chunking.chunkers import RegionChunker
from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.embedding.base import EmbeddingBatch
from qedge_dagster.extractors.base import ExtractionContext
from qedge_dagster.pipeline import IngestionPipeline
from tests.pipeline.support import CountingEmbedder, check_integrity, contents, ingest, prose, write


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", {f"{name}.txt": "\n\n".join(prose(seed, 8)) for seed, name in enumerate("abcdef")})


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


def codes(result: RunResult) -> dict[str, int]:
    return {document.document_id: document.failure.code for document in result.documents if document.failure}


def with_open(docs: Path, document_id: str, opener: Callable[[], BinaryIO]) -> ItemsSource:
    """The folder, one document of which is opened otherwise."""

    def items() -> Iterator[SourceItem]:
        for item in FolderSource(docs, source_id="s").items():
            assert isinstance(item, SourceItem)
            yield replace(item, open=opener) if item.document_id == document_id else item

    return ItemsSource(items, "s")


def test_an_unreadable_document_is_tried_again(docs: Path, db: Path) -> None:
    """6053: the rest is indexed, and the next run reads the document that had vanished."""

    def vanished() -> BinaryIO:
        raise FileNotFoundError(2, "No such file or directory")

    result = ingest(db, with_open(docs, "b.txt", vanished), CountingEmbedder())
    assert (result.outcome, codes(result), result.documents_indexed) == ("completed", {"b.txt": 6053}, 5)
    result = ingest(db, FolderSource(docs, source_id="s"), CountingEmbedder())
    assert (result.documents_indexed, result.documents_skipped) == (1, 5)


def test_what_a_store_raises_is_told_by_its_type(docs: Path, db: Path) -> None:
    """Whatever an `open` raises is 6053, without the message, which may hold a signed URL."""

    def broken() -> BinaryIO:
        raise RuntimeError("https://secret")

    result = ingest(db, with_open(docs, "b.txt", broken), CountingEmbedder())
    [failed] = [document.failure for document in result.documents if document.failure]
    assert (failed.code, failed.message) == (6053, "RuntimeError")


@pytest.mark.parametrize("declared", [True, False], ids=["declared size", "unknown size"])
def test_an_over_size_document_fails_before_it_is_extracted(db: Path, *, declared: bool) -> None:
    """6052 by the declared size, or by counting while hashing; no hash is kept, so it is tried again."""
    big = b"x" * 5000

    def items() -> Iterator[SourceItem]:
        yield SourceItem("big.txt", "text/plain", lambda: io.BytesIO(big), size_bytes=len(big) if declared else None)

    options = IngestionOptions(max_document_bytes=4999)
    for _ in range(2):
        assert codes(ingest(db, ItemsSource(items, "s"), CountingEmbedder(), options=options)) == {"big.txt": 6052}
    assert contents(db)[1][0][3] == ""
    assert ingest(db, ItemsSource(items, "s"), CountingEmbedder()).documents_indexed == 1


def test_a_document_id_given_twice_is_no_silent_overwrite(db: Path) -> None:
    """6054 for the second; the first is indexed."""
    items = [SourceItem("a.txt", "text/plain", lambda text=text: io.BytesIO(text)) for text in (b"first", b"second")]
    result = ingest(db, ItemsSource(items, "s"), CountingEmbedder())
    assert (result.documents_indexed, result.documents_failed, codes(result)) == (1, 1, {"a.txt": 6054})
    assert [row[4] for row in contents(db)[0]] == ["first"]


def test_a_failure_that_the_bytes_settle_is_not_tried_again(docs: Path, db: Path) -> None:
    """Binary under a text name: 6104 once, then skipped until the bytes change; earlier chunks stay, called stale."""
    ingest(db, FolderSource(docs), CountingEmbedder())
    rows = contents(db)[0]
    write(docs, {"c.txt": b"\x7fELF" + bytes(range(256)) * 40})
    result = ingest(db, FolderSource(docs), CountingEmbedder())
    assert (result.outcome, codes(result)) == ("completed", {"c.txt": 6104})
    assert contents(db)[0] == rows
    with IngestionPipeline.open(db, embedder=CountingEmbedder()) as pipeline:
        assert pipeline.run(FolderSource(docs)).documents_skipped == 6
        facts = pipeline.diagnostics(counts=True)
        assert (facts["failed"], facts["stale"]) == (1, 1)
    write(docs, {"c.txt": "Text again."})
    assert ingest(db, FolderSource(docs), CountingEmbedder()).documents_indexed == 1
    check_integrity(db)


def test_an_unsupported_document_is_neither_indexed_nor_failed(docs: Path, db: Path) -> None:
    """6101 in its entry, counted as nothing, not opened, and skipped by the next run."""
    write(docs, {"photo.xyz": b"\x00\x01"})
    result = ingest(db, FolderSource(docs), CountingEmbedder())
    assert (result.documents_failed, result.documents_indexed, codes(result)) == (0, 6, {"photo.xyz": 6101})
    assert [document.outcome for document in result.documents if document.failure] == ["unsupported"]
    assert ingest(db, FolderSource(docs), CountingEmbedder()).documents_skipped == 7


class RaisingExtractor:
    id, version, variant = "mine", 1, ""
    extensions = frozenset({".txt"})
    media_types = frozenset({"text/plain"})

    def __init__(self, result: Exception | ExtractedDocument) -> None:
        self._result = result

    def can_extract(self, item: SourceItem) -> bool:
        return item.document_id == "a.txt"

    def extract(self, item: SourceItem, context: ExtractionContext) -> ExtractedDocument:  # noqa: ARG002
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (ValueError("the secret text"), 6102),
        (MemoryError(), 6102),
        (RecursionError(), 6102),
        (OSError(5, "Input/output error"), 6053),
        (QedgeError(6103, "a password is needed"), 6103),
        (ExtractedDocument("a.txt", "mine", 1, "text/plain", "lone \ud800 surrogate", ()), 6104),
        (ExtractedDocument("a.txt", "mine", 1, "text/plain", "", (), page_count=3, has_text_layer=False), 6105),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else type(value).__name__,
)
def test_an_extractor_that_misbehaves_costs_one_document(
    docs: Path, db: Path, result: Exception | ExtractedDocument, code: int
) -> None:
    """Whatever it raises or returns, the other documents are indexed and no text is in the message."""
    with IngestionPipeline.open(db, embedder=CountingEmbedder(), extractors=[RaisingExtractor(result)]) as pipeline:
        run = pipeline.run(FolderSource(docs))
    assert (run.outcome, run.documents_indexed, codes(run)) == ("completed", 5, {"a.txt": code})
    [failure] = [document.failure for document in run.documents if document.failure]
    assert "secret" not in failure.message
    assert run.documents_failed == (code != 6105)


def test_a_fault_in_the_chunker_costs_one_document(docs: Path, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a plain bug is recorded for its document, by type, and the run goes on."""
    chunk = RegionChunker.chunk

    def faulty(self: RegionChunker, document: ExtractedDocument, warn: Callable[[str], None]) -> list[ChunkDraft]:
        if document.document_id == "b.txt":
            raise IndexError("the secret text")
        return chunk(self, document, warn)

    monkeypatch.setattr(RegionChunker, "chunk", faulty)
    result = ingest(db, FolderSource(docs), CountingEmbedder())
    assert (result.outcome, result.documents_indexed, codes(result)) == ("completed", 5, {"b.txt": 6102})
    [failure] = [document.failure for document in result.documents if document.failure]
    assert "secret" not in failure.message


def test_a_failed_call_is_tried_again_in_halves(docs: Path, db: Path) -> None:
    """One raise costs one more attempt in two halves; nothing is lost."""
    embedder = CountingEmbedder(fail_on=lambda _: embedder.calls == 1)
    result = ingest(db, FolderSource(docs), embedder)
    assert (result.outcome, result.documents_failed, result.documents_indexed) == ("completed", 0, 6)
    assert embedder.calls == result.embed_calls
    assert len(embedder.texts) == result.texts_embedded == len(set(embedder.texts))


def test_a_poisonous_document_fails_alone_in_every_run(docs: Path, db: Path) -> None:
    """6206 for the document whose text always raises; the others are indexed, now and later."""
    write(docs, {"b.txt": "poison"})
    embedder = CountingEmbedder(fail_on=lambda text: "poison" in text)
    for indexed in (5, 0):
        result = ingest(db, FolderSource(docs), embedder)
        assert (result.outcome, result.documents_indexed, codes(result)) == ("completed", indexed, {"b.txt": 6206})
    check_integrity(db)


def test_an_embedder_that_always_raises_suspends_the_run(docs: Path, db: Path) -> None:
    """Three documents in a row: `embedding:failed`, and the next run goes on."""
    result = ingest(db, FolderSource(docs), CountingEmbedder(fail_on=lambda _: True))
    assert (result.outcome, result.suspend_reason, result.documents_failed) == ("suspended", "embedding:failed", 3)
    assert ingest(db, FolderSource(docs), CountingEmbedder()).documents_indexed == 6


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf], ids=["zero", "nan", "inf"])
def test_a_vector_that_would_spoil_the_index_is_refused(docs: Path, db: Path, value: float) -> None:
    """vec0 takes such vectors and then ranks other rows wrongly, so the document fails with 6206."""
    write(docs, {"b.txt": "poison"})

    class Spoiling(CountingEmbedder):
        def embed_documents(self, texts):
            batch = super().embed_documents(texts)
            for position, text in enumerate(texts):
                if text == "poison":
                    batch.vectors[position] = value
            return batch

    result = ingest(db, FolderSource(docs), Spoiling())
    assert (result.outcome, result.documents_indexed, codes(result)) == ("completed", 5, {"b.txt": 6206})


def test_a_wrong_dimension_fails_the_run_before_any_row(docs: Path, db: Path) -> None:
    """6006: the model and its profile disagree, whatever the document."""

    class Wide(CountingEmbedder):
        def embed_documents(self, texts):
            return EmbeddingBatch(np.ones((len(texts), 9), dtype=np.float32), 1)

    result = ingest(db, FolderSource(docs), Wide())
    assert result.outcome == "failed"
    assert result.failure is not None
    assert result.failure.code == 6006
    assert contents(db)[0] == []


def test_twenty_systemic_failures_in_a_row_abort_the_run(tmp_path: Path, db: Path) -> None:
    """6010: a mount that is gone is not 10,000 bad documents; failures settled by the bytes never count."""

    def vanished() -> BinaryIO:
        raise OSError(5, "Input/output error")

    def items(opener: Callable[[], BinaryIO]) -> list[SourceItem]:
        return [SourceItem(f"{number:03}.txt", "text/plain", opener) for number in range(50)]

    result = ingest(db, ItemsSource(items(vanished), "s"), CountingEmbedder())
    assert (result.outcome, result.documents_failed) == ("failed", 20)
    assert result.failure is not None
    assert result.failure.code == 6010
    result = ingest(
        tmp_path / "b.db", ItemsSource(items(lambda: io.BytesIO(b"\x7fELF" + bytes(9999))), "s"), CountingEmbedder()
    )
    assert (result.outcome, result.documents_failed) == ("completed", 50)


def test_fail_fast_makes_the_first_failure_fatal(docs: Path, db: Path) -> None:
    """With the document's own code, and its id in the message."""
    write(docs, {"b.txt": b"\x7fELF" + bytes(9999)})
    result = ingest(db, FolderSource(docs), CountingEmbedder(), run=RunOptions(fail_fast=True))
    assert result.outcome == "failed"
    assert result.failure is not None
    assert result.failure.code == 6104
    assert "b.txt" in result.failure.message
    assert result.documents_indexed == 1
