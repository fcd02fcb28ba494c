"""Each code of the catalogue is provoked as a caller would meet it: nothing stands there that cannot happen."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias
from unittest import mock

import apsw
import numpy as np
import pytest
from click.testing import CliRunner

from qedge_dagster import (
    CallableEmbedder,
    ChunkingOptions,
    Collection,
    Failure,
    FolderSource,
    IngestionOptions,
    IngestionPipeline,
    ItemsSource,
    ModelProfile,
    OnnxEmbedder,
    QedgeError,
    RunOptions,
    RunResult,
    SourceItem,
)
from qedge_dagster.chunking.tokenizer import HuggingFaceTokenizer
from qedge_dagster.cli import main
from qedge_dagster.errors import CATALOGUE
from qedge_dagster.extractors import PdfExtractor, TextExtractor
from qedge_dagster.pipeline.events import DocumentIndexed
from qedge_dagster.sources import Source
from tests.extractors.pdf.builder import build, pages, source_of
from tests.extractors.pdf.encryption import encrypted
from tests.pipeline.support import CountingEmbedder, prose, tokenizer

#: Raises, or returns what recorded it. The folder that it gets is empty.
Provocation: TypeAlias = Callable[[Path], object]

PROVOCATIONS: dict[int, Provocation] = {}


def provokes(code: int) -> Callable[[Provocation], None]:
    def register(provocation: Provocation) -> None:
        assert code not in PROVOCATIONS
        PROVOCATIONS[code] = provocation

    return register


def test_every_code_has_a_provocation() -> None:
    """A new code is met by a test, and one that is gone leaves none behind."""
    assert list(PROVOCATIONS) == list(CATALOGUE)


@pytest.mark.parametrize("code", PROVOCATIONS)
def test_every_code_is_met(code: int, tmp_path: Path) -> None:
    """What is raised or recorded has this code, and no other, and says what to do."""
    failures: list[Failure | None]
    try:
        result = PROVOCATIONS[code](tmp_path)
        assert isinstance(result, RunResult)
        failures = [result.failure, *(document.failure for document in result.documents)]
    except QedgeError as error:
        failures = [error.failure()]
    met = {failure.code: failure.remedy for failure in failures if failure is not None}
    assert all(met.values())
    assert set(met) == ({6010, 6053} if code == 6010 else {code})  # 6010 is of a run whose documents failed


def run(
    folder: Path,
    source: Source | None = None,
    *,
    embedder: Any = None,
    run: RunOptions | None = None,
    on_event: Callable[[object], None] | None = None,
    **pipeline: Any,
) -> RunResult:
    """One run into the folder's database, as a new process would make it."""
    with IngestionPipeline.open(folder / "q.db", embedder=embedder or CountingEmbedder(), **pipeline) as opened:
        return opened.run(source or one(), options=run, on_event=on_event)


def one(document_id: str = "a.txt", content: bytes = b"Some text.", media_type: str = "text/plain") -> ItemsSource:
    return ItemsSource([SourceItem(document_id, media_type, lambda: io.BytesIO(content))], "s")


def pdf(content: str) -> ItemsSource:
    return one("a.pdf", build(content), "application/pdf")


def execute(folder: Path, statement: str) -> None:
    with closing(apsw.Connection(str(folder / "q.db"))) as connection:
        connection.execute(statement)


def chunking(**options: Any) -> IngestionOptions:
    return IngestionOptions(chunking=ChunkingOptions(**options))


def unreadable() -> BinaryIO:
    raise OSError(5, "Input/output error")


# Configuration and runs


@provokes(6001)
def _(_: Path) -> None:
    CallableEmbedder(lambda texts: [[1.0]] * len(texts), ModelProfile("mine", 1, 256), None)


@provokes(6002)
def _(folder: Path) -> None:
    Collection.open(folder / "q.db")


@provokes(6003)
def _(folder: Path) -> RunResult:
    return run(folder, options=chunking(max_tokens=9999))


@provokes(6004)
def _(folder: Path) -> RunResult:
    return run(folder, extractors=[TextExtractor(), TextExtractor()])


@provokes(6005)
def _(_: Path) -> None:
    ChunkingOptions(max_tokens=100, overlap=50)


@provokes(6006)
def _(folder: Path) -> RunResult:
    run(folder)
    return run(folder, embedder=CountingEmbedder(dimensions=9))


@provokes(6007)
def _(folder: Path) -> RunResult:
    execute(folder, "CREATE TABLE mine (x); PRAGMA user_version = 7")
    return run(folder)


@provokes(6008)
def _(folder: Path) -> RunResult:
    return run(folder, on_event=lambda event: run(folder) if isinstance(event, DocumentIndexed) else None)


@provokes(6009)
def _(folder: Path) -> RunResult:
    run(folder)
    return run(folder, run=RunOptions(strict_recipe=True), options=chunking(max_tokens=100))


@provokes(6010)
def _(folder: Path) -> RunResult:
    return run(folder, ItemsSource([SourceItem(f"{n}.txt", "text/plain", unreadable) for n in range(30)], "s"))


@provokes(6011)
def _(folder: Path) -> RunResult:
    run(folder)
    return run(folder, options=IngestionOptions(distance="l2"))


@provokes(6012)
def _(folder: Path) -> RunResult:
    run(folder)
    return run(folder, embedder=CountingEmbedder("another"))


@provokes(6013)
def _(folder: Path) -> None:
    (folder / "home").write_text("a file where the folder should be", "utf-8")
    command = ["ingest", str(folder), "--db", str(folder / "q.db")]
    printed = CliRunner().invoke(main, command, env={"DAGSTER_HOME": str(folder / "home")}).stderr
    found = re.fullmatch(r"qedge: (\d+) \w+: (.+?)\. (.+)\n", printed)
    assert found, printed
    raise QedgeError(int(found[1]), found[2], remedy=found[3])


# Sources


@provokes(6051)
def _(folder: Path) -> RunResult:
    return run(folder, FolderSource(folder / "none"))


@provokes(6052)
def _(folder: Path) -> RunResult:
    return run(folder, options=IngestionOptions(max_document_bytes=5))


@provokes(6053)
def _(folder: Path) -> RunResult:
    return run(folder, ItemsSource([SourceItem("a.txt", "text/plain", unreadable)], "s"))


@provokes(6054)
def _(folder: Path) -> RunResult:
    [item] = one().items()
    assert isinstance(item, SourceItem)
    return run(folder, ItemsSource([item, item], "s"))


@provokes(6055)
def _(folder: Path) -> RunResult:
    return run(folder, one("a\x00.txt"))


# Documents


@provokes(6101)
def _(folder: Path) -> RunResult:
    return run(folder, one("a.xyz", media_type="application/octet-stream"))


@provokes(6102)
def _(folder: Path) -> RunResult:
    class Faulty(TextExtractor):
        def extract(self, *_: object) -> Any:
            raise IndexError

    return run(folder, extractors=[Faulty()])


@provokes(6103)
def _(folder: Path) -> RunResult:
    return run(folder, pdf(encrypted(source_of("two_columns"), "open", "own")))


@provokes(6104)
def _(folder: Path) -> RunResult:
    return run(folder, one(content=b"\x7fELF" + bytes(range(256)) * 40))


@provokes(6105)
def _(folder: Path) -> RunResult:
    return run(folder, pdf(pages([""])))


@provokes(6106)
def _(folder: Path) -> RunResult:
    return run(folder, one(content="Café".encode("latin-1")), extractors=[TextExtractor(strict_utf8=True)])


@provokes(6107)
def _(folder: Path) -> RunResult:
    content = pages(["BT /F1 12 Tf 72 720 Td (A page) Tj ET"] * 3)
    return run(folder, pdf(content), extractors=[PdfExtractor(page_budget=1e-9)])


@provokes(6151)
def _(folder: Path) -> RunResult:
    class Fine:
        """A tokenizer that makes of each character more tokens than a chunk may have."""

        id = "fine"
        special_token_overhead = 0
        max_length = None

        def count(self, text: str) -> int:
            return 300 * len(text)

        def count_batch(self, texts: Sequence[str]) -> list[int]:
            return [self.count(text) for text in texts]

        def offsets(self, text: str) -> np.ndarray:
            starts = np.repeat(np.arange(len(text), dtype=np.int32), 300)
            return np.stack([starts, starts + 1], axis=1)

    embedder = CountingEmbedder()
    embedder.tokenizer = Fine()  # type: ignore[assignment]
    return run(folder, embedder=embedder)


@provokes(6152)
def _(folder: Path) -> RunResult:
    text = " ".join(prose(0, 20, longest=60)).encode()
    return run(folder, one(content=text), options=chunking(overflow="throw"))


@provokes(6153)
def _(folder: Path) -> RunResult:
    embedder = CountingEmbedder()
    embedder.tokenizer = HuggingFaceTokenizer(tokenizer().raw, max_length=128)
    return run(folder, embedder=embedder)


@provokes(6154)
def _(folder: Path) -> RunResult:
    with mock.patch("qedge_dagster.chunking.drafting._Writer._text", return_value=" "):  # as no chunker does
        return run(folder)


@provokes(6155)
def _(folder: Path) -> RunResult:
    with mock.patch("qedge_dagster.extractors.markdown.list_block", side_effect=IndexError):  # as no parser does
        return run(folder, one("a.md", b"- item", "text/markdown"))


# The database and the model


@provokes(6201)
def _(folder: Path) -> RunResult:
    run(folder)
    execute(folder, "DROP TABLE qedge_ingest_meta; PRAGMA user_version = 0")
    return run(folder)


@provokes(6202)
def _(folder: Path) -> RunResult:
    run(folder)
    execute(folder, "UPDATE qedge_ingest_meta SET value = 'md5' WHERE key = 'hash_algorithm'")
    return run(folder)


@provokes(6203)
def _(folder: Path) -> RunResult:
    run(folder)
    execute(folder, "UPDATE qedge_ingest_meta SET value = '99' WHERE key = 'schema_version'")
    return run(folder)


@provokes(6204)
def _(folder: Path) -> RunResult:
    (folder / "q.db").write_text("Dear diary, " * 500, "utf-8")
    return run(folder)


@provokes(6205)
def _(folder: Path) -> RunResult:
    return run(folder, on_event=lambda _: (folder / "q.db").unlink(missing_ok=True))


@provokes(6206)
def _(folder: Path) -> RunResult:
    return run(folder, embedder=CountingEmbedder(fail_on=lambda _: True))


@provokes(6207)
def _(folder: Path) -> RunResult:
    run(folder)
    execute(folder, "CREATE TRIGGER guard BEFORE INSERT ON chunks BEGIN SELECT RAISE(ABORT, 'full'); END")
    return run(folder, one(content=b"Other text."))


@provokes(6208)
def _(folder: Path) -> None:
    OnnxEmbedder.from_folder(folder / "none")
