"""A collection filled by plain SQL, and an embedder that needs no model."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qedge_dagster.chunking.base import embed_text
from qedge_dagster.chunking.tokenizer import Tokenizer
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.schema import CollectionSpec, create
from qedge_dagster.embedding.base import Embedder, EmbeddingBatch, model_identity
from qedge_dagster.embedding.profiles import ModelProfile
from qedge_dagster.errors import QedgeError
from qedge_dagster.hashing import chunk_key, content_hash
from qedge_dagster.state import DocumentRow, ModelRecord, StateStore


class HashEmbedder:
    """Unit vectors that depend on the text alone; `queries` counts what was asked."""

    tokenizer: Tokenizer | None = None
    model_hash: str | None = None

    def __init__(self, dimensions: int = 8, identifier: str = "hash") -> None:
        self.profile = ModelProfile(identifier, dimensions, 256)
        self.queries = 0

    def load(self) -> None:
        """There is nothing to load."""

    def embed_documents(self, texts: Sequence[str]) -> EmbeddingBatch:
        return EmbeddingBatch(np.stack([self._vector(text) for text in texts]), tokens=len(texts))

    def embed_query(self, text: str) -> np.ndarray:
        self.queries += 1
        return self._vector(text)

    def _vector(self, text: str) -> np.ndarray:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        vector = np.random.default_rng(seed).normal(size=self.profile.dimensions)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


def row(text: str, document_id: str = "a.md", ordinal: int = 0, **columns: Any) -> dict[str, Any]:
    """A chunk as a mapping of its columns; `vector` among them if it is not to be the embedder's."""
    return {
        "source_id": "s",
        "document_id": document_id,
        "ordinal": ordinal,
        "text": text,
        "heading_path": "",
        "char_start": 0,
        "char_end": len(text),
        "token_count": len(text.split()),
        "page": -1,
        "block_kind": "paragraph",
        "extractor_id": "text",
        "media_type": "text/plain",
        "created_utc": "2024-05-01T00:00:00Z",
        **columns,
    }


#: A small collection: two documents, three chunks.
ROWS = [row("roof leak", "a.md"), row("gutter", "a.md", 1), row("tile", "b.md")]


def code_of(call: Callable[..., object], *args: object, **options: object) -> int:
    """The code that the call fails with."""
    with pytest.raises(QedgeError) as caught:
        call(*args, **options)
    return caught.value.code


def insert(database: Database, name: str, rows: Iterable[dict[str, Any]], embedder: Embedder) -> None:
    """Rows, vectors and the state of their documents; the caller holds the transaction."""
    counts: dict[tuple[str, str], int] = {}
    equals: Counter[tuple[str, str, bytes]] = Counter()
    for given in rows:
        columns = dict(given)
        vector = columns.pop("vector", None)
        if vector is None:
            vector = embedder.embed_documents([columns["text"]]).vectors[0]
        digest = content_hash(embed_text(columns["heading_path"], columns["text"]))
        columns["content_hash"] = digest
        identity = (columns["source_id"], columns["document_id"], digest)
        columns.setdefault("key", chunk_key(*identity, equals[identity]))
        equals[identity] += 1
        database.connection.execute(
            f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
            tuple(columns.values()),
        )
        database.connection.execute(
            f"INSERT INTO {name}_vec (rowid, embedding) VALUES (?, ?)",
            (database.connection.last_insert_rowid(), np.asarray(vector, dtype=np.float32).tobytes()),
        )
        document = (columns["source_id"], columns["document_id"])
        counts[document] = counts.get(document, 0) + 1
    state = StateStore(database, name)
    for (source_id, document_id), count in counts.items():
        state.put_document(
            source_id,
            DocumentRow(
                document_id, None, None, None, None, "text", count, "indexed", None, "r", "2024-05-01T00:00:00Z"
            ),
        )


def build(path: Path, rows: Iterable[dict[str, Any]], embedder: Embedder | None = None, **spec: Any) -> CollectionSpec:
    """A database with one collection that holds `rows` and was built with `embedder`."""
    embedder = embedder or HashEmbedder()
    collection = CollectionSpec(dimensions=embedder.profile.dimensions, **spec)
    with closing(Database(path)) as database:
        create(database, collection)
        with database.atomic():
            insert(database, collection.name, rows, embedder)
            StateStore(database, collection.name).put_model(ModelRecord(model_identity(embedder), embedder.profile.id))
    return collection
