"""What the stopped runs are about: an index with something to merge, and a document that is long in one phase."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import apsw

from qedge_dagster.collection.connection import Database
from qedge_dagster.embedding import default_embedder
from qedge_dagster.embedding.profiles import DEFAULT_PROFILE
from qedge_dagster.pipeline.options import IngestionOptions
from qedge_dagster.sources import FolderSource
from tests.extractors.pdf.long_document import write as write_pdf
from tests.pipeline.support import CountingEmbedder, ingest, prose, write

SOURCE = "docs"
#: Its index of a text is several times as large as that of words, so that a merge takes a while.
FTS_TOKENIZER: Literal["trigram"] = "trigram"

_CHUNKS = (
    "SELECT c.document_id, key, ordinal, text, hex(content_hash), char_start, char_end, token_count, page, block_kind,"
    " extractor_id, hex(v.embedding) FROM chunks AS c JOIN chunks_vec AS v ON v.rowid = c._rowid ORDER BY 1, 2"
)
_STATES = (
    "SELECT document_id, hex(content_hash), hex(recipe_hash), size_bytes, extractor_id, chunk_count, status, error"
    " FROM qedge_ingest_document ORDER BY 1"
)


def build(root: Path) -> None:
    """Documents in `docs`, and their index `x.db` as the default model would have made it, but for the vectors. Its
    full-text index was never merged."""
    write(root / "docs", {f"{n}.txt": "\n\n".join(prose(n, 1500)) for n in range(3)})
    write(root / "docs", {f"small/{n:03}.txt": f"Boat {n} lies at berth {n * 7}." for n in range(200)})
    embedder = CountingEmbedder(default_embedder().model_hash)
    embedder.profile = DEFAULT_PROFILE
    options = IngestionOptions(fts_tokenizer=FTS_TOKENIZER)
    database = root / "x.db"
    for pattern, merge_from in (("none", 0), ("**/*", 4)):
        source = FolderSource(root / "docs", pattern=pattern, source_id=SOURCE)
        assert ingest(database, source, embedder, options=options).outcome == "completed"
        with closing(apsw.Connection(str(database))) as connection:
            connection.execute("INSERT INTO chunks_fts(chunks_fts, rank) VALUES('automerge', ?)", (merge_from,))


def _small(docs: Path) -> None:
    """Next to nothing, after two hundred documents that are read and found unchanged."""
    write(docs, {"z.txt": "The last boat lies at the pier."})


def _long_pdf(docs: Path) -> None:
    write_pdf(docs / "z.pdf", 60)


def _long_text(docs: Path) -> None:
    write(docs, {"z.txt": "\n\n".join(prose(9, 60))})


def _copy(docs: Path) -> None:
    """Many chunks, and the vector of each is known."""
    shutil.copy(docs / "1.txt", docs / "z.txt")


#: By phase: the document that makes it long, and the how-maniest mark of it is the one to stop at.
PHASES: dict[str, tuple[Callable[[Path], None], int]] = {
    "hash": (_small, 40),
    "extract": (_long_pdf, 1),
    "embed": (_long_text, 3),
    "write": (_copy, 1),
}


def by_document(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The state and the chunks of each document, vectors included."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with closing(Database(database, read_only=True)) as opened:
        for query in (_STATES, _CHUNKS):
            for document_id, *values in opened.connection.execute(query):
                found.setdefault(document_id, []).append(tuple(values))
    return found
