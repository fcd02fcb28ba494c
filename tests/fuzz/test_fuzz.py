"""Whatever comes in, nothing crashes or hangs and what is promised holds."""

from __future__ import annotations

import io
import os
import random
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from dagster._core.definitions.partitions.utils.base import raise_error_on_invalid_partition_key_substring
from hypothesis import strategies as st

from qedge_dagster.collection import Collection
from qedge_dagster.collection.filters import All, Filter
from qedge_dagster.documents import ExtractedDocument, media_type_for
from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors import ExtractionContext, default_extractors
from qedge_dagster.extractors.base import ExtractorRegistry
from qedge_dagster.orchestration.partitions import document_id_of, partition_key_of
from qedge_dagster.sources import SourceItem
from tests.chunking.support import CHUNKERS, TOKENIZERS, assert_promises, budget, chunker, markdown
from tests.chunking.test_promises import documents, markdown_sources
from tests.collection.support import HashEmbedder, build, row
from tests.collection.test_filters import EDGES, conditions, holds
from tests.fuzz.documents import FORMATS
from tests.fuzz.driver import fuzz, guarded

#: How long all of them take together in the long form.
_SECONDS = float(os.environ.get("QEDGE_FUZZ_SECONDS", "1800"))

_CORPUS = Path(__file__).parents[1] / "fixtures" / "fuzz"
_REGISTRY = ExtractorRegistry(default_extractors())
_ANY_TEXT = st.text(st.characters(codec=None, categories=None))


def _extract(suffix: str, data: bytes) -> ExtractedDocument | None:
    """None if it is refused with a code of documents that cannot be had."""
    item = SourceItem(f"a{suffix}", media_type_for(suffix), lambda: io.BytesIO(data))
    try:
        with guarded():
            return _REGISTRY.resolve(item).extract(item, ExtractionContext())
    except QedgeError as error:
        assert 6102 <= error.code <= 6107, error  # noqa: PT017 - either is right
    except RecursionError:  # the worker makes a 6102 of it
        pass
    return None


def check_extraction(suffix: str, data: bytes) -> None:
    document = _extract(suffix, data)
    assert _extract(suffix, data) == document
    if document is None:
        return
    document.text.encode()
    assert "\r" not in document.text
    assert unicodedata.is_normalized("NFC", document.text)
    end = 0
    for block in document.blocks:
        assert end <= block.start < block.end <= len(document.text), block
        assert (block.heading_level > 0) == (block.kind == "heading"), block
        end = block.end


def check_chunks(drawn: tuple[ExtractedDocument | str, str, str, int]) -> None:
    source, name, tokenizer_name, max_tokens = drawn
    document = markdown(source) if isinstance(source, str) else source
    tokenizer = TOKENIZERS[tokenizer_name]()
    limits = budget(tokenizer, max_tokens)
    subject = chunker(name, limits, tokenizer)
    with guarded():
        drafts = subject.chunk(document, pytest.fail)
        assert subject.chunk(document, pytest.fail) == drafts
    assert_promises(document, drafts, limits, tokenizer)


@cache
def _rows() -> list[dict[str, Any]]:
    chance = random.Random(3)
    return [
        row(
            f"roof {number} AND \u65e5\u672c leak NEAR",
            document_id=chance.choice(EDGES),
            ordinal=number % 5,
            page=number % 7 - 1,
            heading_path=chance.choice(EDGES),
            media_type=chance.choice(EDGES),
            key=f"{number:03}",
        )
        for number in range(100)
    ]


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Collection]]:
    """The same rows under each full-text tokenizer."""
    opened: list[Collection] = []
    for tokenizer in ("unicode61", "porter", "trigram"):
        path = tmp_path_factory.mktemp("fuzz") / "c.db"
        build(path, _rows(), fts_tokenizer=tokenizer)
        opened.append(Collection.open(path, embedder=HashEmbedder()))
    yield opened
    for collection in opened:
        collection.close()


def check_keywords(collections: list[Collection], keywords: str | list[str]) -> None:
    known = {columns["key"] for columns in _rows()}
    for collection in collections:
        assert {hit.chunk.key for hit in collection.keyword_search(keywords, top=200)} <= known


def check_filter(collections: list[Collection], filter_: Filter) -> None:
    expected = sorted(columns["key"] for columns in _rows() if holds(filter_, columns))
    hits = collections[0].search("roof", top=200, filter=filter_)
    assert sorted(hit.chunk.key for hit in hits) == expected


def check_keys(ids: list[str]) -> None:
    keys = {partition_key_of(document_id): document_id for document_id in ids}
    assert len(keys) == len(set(ids))
    raise_error_on_invalid_partition_key_substring(list(keys))
    for key, document_id in keys.items():
        assert key.isprintable()
        assert document_id_of(key) == document_id


_CHUNKED = st.tuples(
    documents() | markdown_sources(),
    st.sampled_from(CHUNKERS),
    st.sampled_from(list(TOKENIZERS)),
    st.integers(24, 512),
)
_QUERY = _ANY_TEXT | st.lists(st.sampled_from(['"', "NEAR(", "roof", "OR", "*", ":", "^", "{", "-", "\0", "'"])).map(
    " ".join
)
_TREES = st.recursive(conditions(), lambda inner: st.lists(inner, max_size=4).map(lambda parts: All(tuple(parts))))
_ID = _ANY_TEXT | st.text(".%2Ea/\n\r", max_size=12)

#: What is fuzzed, without what needs a database.
_PURE: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], None]]] = {
    **{f"extract {suffix}": (data, partial(check_extraction, suffix)) for suffix, data in FORMATS.items()},
    "chunk": (_CHUNKED, check_chunks),
    "partition keys": (st.lists(_ID, max_size=8), check_keys),
}
_STORED: dict[str, tuple[st.SearchStrategy[Any], Callable[[list[Collection], Any], None]]] = {
    "keywords": (_QUERY | st.lists(_QUERY, max_size=5), check_keywords),
    "filters": (_TREES, check_filter),
}


@pytest.mark.parametrize("name", _PURE)
def test_some_inputs(name: str) -> None:
    """A few rounds of each."""
    assert fuzz(*_PURE[name], seconds=0.3) > 0


@pytest.mark.parametrize("name", _STORED)
def test_some_questions(name: str, collections: list[Collection]) -> None:
    """A few rounds of questions to a database."""
    strategy, check = _STORED[name]
    assert fuzz(strategy, partial(check, collections), seconds=0.3) > 0


@pytest.mark.long
@pytest.mark.parametrize("name", _PURE)
def test_many_inputs(name: str) -> None:
    """The same for minutes: `QEDGE_FUZZ_SECONDS` for all together."""
    examples = fuzz(*_PURE[name], seconds=_SECONDS / (len(_PURE) + len(_STORED)))
    print(f"\n{name}: {examples} examples")


@pytest.mark.long
@pytest.mark.parametrize("name", _STORED)
def test_many_questions(name: str, collections: list[Collection]) -> None:
    """The same for minutes, of questions to a database."""
    strategy, check = _STORED[name]
    examples = fuzz(strategy, partial(check, collections), seconds=_SECONDS / (len(_PURE) + len(_STORED)))
    print(f"\n{name}: {examples} examples")


@pytest.mark.parametrize("path", sorted(_CORPUS.iterdir()), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    """Each file of the corpus: one that broke something, here or in a tool that made it, stays."""
    check_extraction(path.suffix, path.read_bytes())
