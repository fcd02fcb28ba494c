"""Searching and reading a collection."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import index
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from qedge_dagster.collection.chunk import COLUMNS, ORDER, StoredChunk
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.export import export_parquet
from qedge_dagster.collection.filters import All, Equal, Filter
from qedge_dagster.collection.schema import CollectionSpec, check_file
from qedge_dagster.collection.search import MAX_DEPTH, Lane, fuse, keyword_lane, load_chunks, ranks, vector_lane
from qedge_dagster.collection.snapshot import collection_snapshot, open_snapshot, read_errors
from qedge_dagster.embedding.base import model_identity
from qedge_dagster.errors import QedgeError
from qedge_dagster.state import StateStore

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from qedge_dagster.embedding.base import Embedder

__all__ = ["Collection", "Hit"]

EmbedderSource: TypeAlias = "Embedder | Callable[[], Embedder]"

# Two middling ranks outweigh a first place in one lane, and the deeper the lanes the more rows are in both by accident.
# For questions any depth from 10 to 200 ranks alike; for a passage pasted word by word a small one is better.
_DEPTH = 30
_RRF_K = 60.0


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found. `score` is higher for a better hit:

    * vector search: 1 - cosine distance, or 1 / (1 + distance) in a collection measured by l2;
    * keyword search: bm25 with its sign turned, so above 0 and without an upper limit;
    * hybrid search: the sum of the lanes' reciprocal ranks, divided so that 1.0 is the first in both lanes.

    The ranks start at 1; None where that lane did not find the chunk or was not asked.
    """

    score: float
    chunk: StoredChunk
    vector_rank: int | None = None
    keyword_rank: int | None = None


class Collection:
    """Read-only access to one collection, for as long as wanted and from any thread, while others write to it.

    Each search sees one state of the database: no document half old and half new, and the model and dimension that
    its vectors were made with, even where another process rebuilds the collection meanwhile.
    """

    def __init__(self, database: Database, name: str, embedder: EmbedderSource | None = None) -> None:
        self.name = name
        self.path = database.path
        self._database = database
        self._lock = threading.Lock()  # a transaction belongs to the connection, not to a thread
        self._embedder_source = embedder
        self._embedder: Embedder | None = None
        self._embedder_lock = threading.Lock()

    @classmethod
    def open(cls, path: Path | str, name: str = "chunks", *, embedder: EmbedderSource | None = None) -> Collection:
        """`embedder` is needed to search by text; given as a function, it is called at the first such search.

        Raises `QedgeError` 6002 where there is no such database or collection, 6011, 6201, 6202, 6203 or 6204 where it
        is not one that this release reads.
        """
        database = Database(path, read_only=True)
        try:
            with read_errors(database.path):
                known = check_file(database)
            collection = cls(database, name, embedder)
            collection.spec()
            if not known:
                raise QedgeError(6201, f"{path} has tables of a collection {name}, but holds no ingestion state")
        except BaseException:
            database.close()
            raise
        return collection

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def __enter__(self) -> Collection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def spec(self) -> CollectionSpec:
        """Dimensions, distance and full-text tokenizer, as they are now."""
        with self._reading() as spec:
            return spec

    def chunk_count(self) -> int:
        with self._reading():
            return self._database.connection.execute(f"SELECT count(*) FROM {self.name}").get

    def chunks(self, document_id: str | None = None, source_id: str | None = None) -> Iterator[StoredChunk]:
        """Every chunk, or those of one document or source, in the order of source, document and ordinal.

        The iteration has a connection of its own: it sees one state of the database until it ends or is closed.
        """
        wanted = [("document_id", document_id), ("source_id", source_id)]
        condition, values = All(tuple(Equal(column, value) for column, value in wanted if value is not None)).sql()
        with open_snapshot(self.path, self.name) as (database, _):
            for row in database.connection.execute(
                f"SELECT {', '.join(COLUMNS)} FROM {self.name} WHERE {condition} ORDER BY {ORDER}", values
            ):
                yield StoredChunk.from_row(row)

    def export(self, path: Path | str) -> int:
        """Write every chunk with its vector to a Parquet file, in the order of `chunks`; returns how many.

        Raises `QedgeError` 6207 if the file cannot be written; a file that was there before is then left as it was.
        """
        return export_parquet(self.path, self.name, Path(path))

    def backup(self, target: Path | str, *, overwrite: bool = False) -> int:
        """Copy the whole database to the file `target` while others may write to it; returns its size in bytes.

        Raises `QedgeError` 6005 if `target` exists, unless it may be overwritten, or is in use, 6204 if the database
        is damaged, 6207 if the copy cannot be written; `target` is then as it was before.
        """
        from qedge_dagster.collection.backup import backup  # with all the checks of a file, which no search needs

        return backup(self.path, target, overwrite=overwrite)

    def search(
        self,
        query: str | ArrayLike,
        *,
        top: int = 10,
        filter: Filter | None = None,  # noqa: A002 - the field's word
    ) -> list[Hit]:
        """The chunks nearest to a text or to a vector, exactly (every vector is compared). A blank text finds nothing.

        Raises `QedgeError` 6012 if the collection was built with another model than the embedder's, 6006 for a vector
        of another dimension, 6208 without an embedder, 6206 if it fails, 6005 for a `top` that is not 1 to 4096.
        The model behind a vector that the caller brings cannot be checked.
        """
        top = _count("top", top)
        vector, identity = self._query_vector(query)
        if vector is None:
            return []
        with self._reading() as spec:
            lane = self._vector_lane(spec, vector, identity, top, filter)
            chunks = load_chunks(self._database.connection, self.name, (rowid for rowid, _ in lane))
        similarity = _cosine_score if spec.distance == "cosine" else _l2_score
        return [
            Hit(similarity(distance), chunks[rowid], vector_rank=rank)
            for rank, (rowid, distance) in enumerate(lane, start=1)
        ]

    def keyword_search(
        self,
        keywords: str | Sequence[str],
        *,
        top: int = 10,
        filter: Filter | None = None,  # noqa: A002
    ) -> list[Hit]:
        """The best chunks by bm25 for the words of a text, or for a list of phrases, any of them. Needs no embedder.

        Nothing in `keywords` is an operator; without a word in it nothing is found. The first 64 terms count.
        """
        top = _count("top", top)
        with self._reading() as spec:
            lane = keyword_lane(self._database.connection, spec, keywords, top, _needed(filter))
            chunks = load_chunks(self._database.connection, self.name, (rowid for rowid, _ in lane))
        return [Hit(-bm25, chunks[rowid], keyword_rank=rank) for rank, (rowid, bm25) in enumerate(lane, start=1)]

    def hybrid_search(
        self,
        text: str | ArrayLike,
        keywords: str | Sequence[str] | None = None,
        top: int = 10,
        filter: Filter | None = None,  # noqa: A002
        *,
        depth: int | None = None,
        k: float = _RRF_K,
        weights: tuple[float, float] = (1.0, 1.0),
    ) -> list[Hit]:
        """Reciprocal rank fusion of the vector lane for `text` and the keyword lane for `keywords` (None: the words of
        the text). Each lane contributes `weight / (k + rank)` for its first `depth` rows (30, or `top` if that is
        more); the weights are those of vector and keyword.

        Raises what `search` raises, and 6005 for options that make no ranking.
        """
        top = _count("top", top)
        if depth is None:
            depth = max(_DEPTH, top)
        depth = _count("depth", depth)
        if depth < top:
            raise QedgeError(6005, f"depth {depth} is under top {top}")
        if not (0 <= k < math.inf and all(weight >= 0 for weight in weights) and 0 < sum(weights) < math.inf):
            raise QedgeError(
                6005, f"k {k} and weights {weights}: none negative or infinite, one weight at least above 0"
            )
        if keywords is None:
            if not isinstance(text, str):
                raise QedgeError(6005, "hybrid search with a vector needs keywords")
            keywords = text
        vector, identity = self._query_vector(text)
        with self._reading() as spec:
            connection = self._database.connection
            by_vector = [] if vector is None else self._vector_lane(spec, vector, identity, depth, filter)
            by_keyword = keyword_lane(connection, spec, keywords, depth, _needed(filter))
            fused = fuse(by_vector, by_keyword, weights, k)[:top]
            chunks = load_chunks(connection, self.name, (rowid for rowid, _ in fused))
        vector_rank, keyword_rank = ranks(by_vector), ranks(by_keyword)
        return [Hit(score, chunks[rowid], vector_rank.get(rowid), keyword_rank.get(rowid)) for rowid, score in fused]

    @contextmanager
    def _reading(self) -> Generator[CollectionSpec]:
        with self._lock, collection_snapshot(self._database, self.name) as spec:
            yield spec

    def _vector_lane(
        self, spec: CollectionSpec, vector: np.ndarray, identity: str | None, depth: int, filter_: Filter | None
    ) -> Lane:
        """`identity` is the model behind the vector, None if unknown."""
        model = StateStore(self._database, self.name).model()
        if identity is not None and model is not None and model.identity != identity:
            raise QedgeError(
                6012,
                f"collection {self.name} was built with the model {model.profile_id} ({model.identity[:8]}),"
                f" not with the one of this query ({identity[:8]})",
            )
        if len(vector) != spec.dimensions:
            raise QedgeError(6006, f"the query has {len(vector)} dimensions, collection {self.name} {spec.dimensions}")
        if spec.distance == "cosine":  # the same to the measure, and no overflow when it squares the numbers
            vector = vector / np.linalg.norm(vector)
        return vector_lane(
            self._database.connection, spec, vector.astype(np.float32).tobytes(), depth, _needed(filter_)
        )

    def _query_vector(self, query: str | ArrayLike) -> tuple[np.ndarray | None, str | None]:
        """float64 vector and identity of its model; no vector for a blank text. Outside the lock: models are slow."""
        if not isinstance(query, str):
            return _checked_vector(query, 6005), None
        # A lone surrogate, as from a file name that is no UTF-8, is nothing a tokenizer takes.
        text = query.encode("utf-8", "replace").decode()
        if not text.strip():
            return None, None
        embedder = self._loaded_embedder()
        try:
            vector = embedder.embed_query(text)
        except QedgeError:
            raise
        except Exception as error:
            raise QedgeError(
                6206, f"the query could not be embedded: {type(error).__name__}", remedy="see the embedder's own error"
            ) from error
        return _checked_vector(vector, 6206), model_identity(embedder)

    def _loaded_embedder(self) -> Embedder:
        with self._embedder_lock:
            source = self._embedder_source
            if source is None:
                raise QedgeError(6208, "a search by text needs an embedder, and the collection was opened without one")
            if self._embedder is None:
                if isinstance(source, type) or not hasattr(source, "embed_query"):
                    source = cast("Callable[[], Embedder]", source)()
                self._embedder = cast("Embedder", source)
            return self._embedder


def _checked_vector(values: ArrayLike, code: int) -> np.ndarray:
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise QedgeError(code, "a query vector must be a sequence of numbers") from error
    if vector.ndim != 1:
        raise QedgeError(code, f"a query vector must have one axis, not {vector.ndim}")
    with np.errstate(over="ignore"):
        usable = np.isfinite(vector.astype(np.float32)).all() and vector.any()
    if not usable:
        raise QedgeError(code, "the query vector is zero or not finite, so it is near to nothing")
    return vector


def _count(name: str, value: int) -> int:
    try:
        number = index(value)  # numpy's integers too, which SQLite does not take
    except TypeError:
        raise QedgeError(6005, f"{name} must be a whole number, not {value!r}") from None
    if not 1 <= number <= MAX_DEPTH:
        raise QedgeError(6005, f"{name} must be 1 to {MAX_DEPTH}, not {number}")
    return number


def _needed(filter_: Filter | None) -> Filter | None:
    return None if filter_ == All(()) else filter_


def _cosine_score(distance: float) -> float:
    return 1 - distance


def _l2_score(distance: float) -> float:
    return 1 / (1 + distance)
