"""LlamaIndex's readers as sources of our pipeline: stable ids, and incremental re-index."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import SimpleDirectoryReader
from llama_index.core.readers.base import BaseReader
from llama_index.core.readers.string_iterable import StringIterableReader
from llama_index.core.schema import Document

from qedge_dagster import IngestionPipeline, RunResult
from qedge_dagster.bridges.llamaindex import ReaderSource
from qedge_dagster.errors import QedgeError
from tests.pipeline.support import CountingEmbedder, check_integrity, write

FERRY, LINES = "The ferry leaves at six. " * 12, "Use two lines, and a third in a gale. " * 12
FILES: dict[str, str | bytes] = {
    "boats.md": f"# Boats\n\n{FERRY}\n\n# Mooring\n\n{LINES}\n",
    "notes.txt": "The clubhouse opens at nine.\n",
    "old/log.txt": "Nothing happened.\n",
}


def directory(folder: Path, **options: Any) -> SimpleDirectoryReader:
    return SimpleDirectoryReader(str(folder), recursive=True, **{"raise_on_error": True, **options})


def run(database: Path, source: ReaderSource) -> tuple[RunResult, CountingEmbedder]:
    embedder = CountingEmbedder()
    with IngestionPipeline.open(database, embedder=embedder) as pipeline:
        return pipeline.run(source), embedder


def stored(database: Path) -> dict[str, list[str]]:
    with IngestionPipeline.open(database, embedder=CountingEmbedder()) as pipeline:
        found: dict[str, list[str]] = {}
        for chunk in pipeline.collection.chunks():
            found.setdefault(chunk.document_id, []).append(chunk.breadcrumb)
        return found


def test_incremental_over_their_reader(tmp_path: Path) -> None:
    """LlamaIndex's own directory reader, whose ids are random in each run: a second run embeds nothing, an edit its own
    chunks, and a file that is gone is pruned."""
    folder, database = write(tmp_path / "files", FILES), tmp_path / "notes.db"
    first, _ = run(database, ReaderSource(directory(folder), "files"))
    assert (first.outcome, first.documents_indexed) == ("completed", 3)
    assert sorted(stored(database)) == sorted(str(folder / name) for name in FILES)
    assert stored(database)[str(folder / "boats.md")] == ["Boats", "Mooring"]

    again, embedder = run(database, ReaderSource(directory(folder), "files"))
    assert (again.documents_skipped, embedder.calls) == (3, 0)

    seven = FERRY.replace("six", "seven")
    write(folder, {"boats.md": f"# Boats\n\n{seven}\n\n# Mooring\n\n{LINES}\n"})
    (folder / "notes.txt").unlink()
    edited, embedder = run(database, ReaderSource(directory(folder), "files"))
    assert embedder.texts == [f"Boats\n\n{seven.strip()}"]
    assert (edited.documents_indexed, edited.documents_removed, edited.chunks_unchanged) == (1, 1, 1)
    check_integrity(database)


class Failing(BaseReader):
    """Raises after some of its documents."""

    def __init__(self, documents: list[Document], after: int) -> None:
        self._documents = documents
        self._after = after

    def lazy_load_data(self, *_: Any, **__: Any) -> Iterable[Document]:
        for number, document in enumerate(self._documents):
            if number == self._after:
                raise ConnectionError("token=secret")
            yield document


def test_a_reader_that_fails_midway(tmp_path: Path) -> None:
    """What did not come is kept, and the result says so; a reader that fails at once fails the run."""
    documents = [Document(id_=name, text=f"About {name}.") for name in ("a", "b", "c")]
    database = tmp_path / "notes.db"
    run(database, ReaderSource(Failing(documents, 3), "feed"))
    for after, outcome in ((1, "completed"), (0, "failed")):
        result, _ = run(database, ReaderSource(Failing(documents, after), "feed"))
        assert (result.outcome, result.documents_removed) == (outcome, 0)
        assert "secret" not in str(result.as_dict())
        assert sorted(stored(database)) == ["a", "b", "c"]
    assert result.failure is not None
    assert result.failure.code == 6051
    result, _ = run(database, ReaderSource(Failing(documents[:2], 2), "feed"))
    assert (result.outcome, result.documents_removed) == ("completed", 1)


class Pages(BaseReader):
    """Several documents of one file, as PDF readers give them, without `lazy_load_data`."""

    def load_data(self, *_: Any, **load_kwargs: Any) -> list[Document]:
        metadata = {"file_path": "report.pdf", "file_name": "report.pdf", "file_type": "application/pdf"}
        pages = [Document(text=f"Page {n}.", metadata={**metadata, "page_label": str(n)}) for n in (1, 2)]
        return [*pages, *(Document(text=text, metadata={"url": "http://host/x"}) for text in load_kwargs["texts"])]


def test_names_of_documents(tmp_path: Path) -> None:
    """A random id is replaced by path or URL, with the page, and numbered where there are several; other ids stay."""
    database = tmp_path / "notes.db"
    source = ReaderSource(Pages(), "pages", load_kwargs={"texts": ["One.", "Two."]})
    result, _ = run(database, source)
    assert result.documents_failed == 0
    assert sorted(stored(database)) == ["http://host/x", "http://host/x#2", "report.pdf#page=1", "report.pdf#page=2"]
    named = ReaderSource(Failing([Document(id_="my-id", text="x", metadata={"file_path": "y"})], 9), "named")
    assert [item.document_id for item in named.items()] == ["my-id"]  # type: ignore[union-attr]
    own = ReaderSource(Pages(), "own", document_id=lambda d: d.text, load_kwargs={"texts": []})
    assert [item.document_id for item in own.items()] == ["Page 1.", "Page 2."]  # type: ignore[union-attr]


def test_readers_that_are_refused() -> None:
    """One that leaves out what it cannot read, and one whose documents nothing names."""
    with pytest.raises(QedgeError, match="raise_on_error") as caught:
        ReaderSource(SimpleDirectoryReader(input_files=[__file__]), "files")
    assert caught.value.code == 6005
    nameless = ReaderSource(StringIterableReader(), "strings", load_kwargs={"texts": ["a"]})
    with pytest.raises(QedgeError, match="document_id") as caught:
        list(nameless.items())
    assert caught.value.code == 6055
