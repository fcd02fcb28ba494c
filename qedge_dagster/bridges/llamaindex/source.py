"""Readers of LlamaIndex as a source of a pipeline."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import UUID

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from qedge_dagster.documents import media_type_for
from qedge_dagster.errors import QedgeError
from qedge_dagster.sources import ItemsSource, SourceItem, UnlistedPart

__all__ = ["ReaderSource"]

#: Where readers put what names a document, the surest first.
_NAMES = ("file_path", "path", "url", "source", "file_name", "document_id", "title")
_MARKDOWN = media_type_for(".md")


class ReaderSource:
    """What `reader` loads, as documents of text: they are hashed, so that a run embeds only what has changed.

    * The id of a document must be the same in every run, and most readers make a new random one each time. Such an id
      is replaced by the path, URL or name in the metadata, with the page where there is one (`report.pdf#page=3`); the
      second document of a name is `name#2`. `document_id` is for readers that this does not fit.
    * Text is Markdown where the reader says so or the name ends in `.md`, else plain text.
    * A reader that fails before its first document fails the run (6051). After that the rest counts as not listed: the
      run goes on to its end, and nothing is removed.
    * What a reader leaves out without a word looks deleted. So `SimpleDirectoryReader` must have `raise_on_error=True`.
    """

    def __init__(
        self,
        reader: BaseReader,
        source_id: str,
        *,
        document_id: Callable[[Document], str] | None = None,
        load_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        """`load_kwargs` go to the reader. Raises `QedgeError` 6055 for an unusable source id, 6005 for a reader that
        hides what it could not read."""
        if getattr(reader, "raise_on_error", None) is False:
            raise QedgeError(
                6005,
                f"{type(reader).__name__} leaves out files that it cannot read, and these would look deleted",
                remedy="give it raise_on_error=True",
            )
        self._reader = reader
        self._document_id = document_id
        self._load_kwargs = dict(load_kwargs or {})
        self._items = ItemsSource(self._listing, source_id)
        self.source_id = source_id

    def items(self) -> Iterator[SourceItem | UnlistedPart]:
        """In the reader's order. Raises `QedgeError` 6051, and 6055 for a document that nothing names."""
        return self._items.items()

    def _listing(self) -> Iterator[SourceItem]:
        met: Counter[str] = Counter()
        for document in self._documents():
            if self._document_id is not None:
                name = self._document_id(document)
            else:
                name = _name_of(document)
                met[name] += 1
                name += f"#{met[name]}" if met[name] > 1 else ""
            yield _item(name, document)

    def _documents(self) -> Iterator[Document]:
        try:
            documents = self._reader.lazy_load_data(**self._load_kwargs)
        except NotImplementedError:  # as the base class has it
            documents = self._reader.load_data(**self._load_kwargs)
        yield from documents


def _name_of(document: Document) -> str:
    if not _is_random(document.id_):
        return document.id_
    metadata = document.metadata
    name = next((str(metadata[field]) for field in _NAMES if metadata.get(field)), None)
    if name is None:
        raise QedgeError(
            6055,
            "the reader gave a document a random id, and nothing in its metadata names it",
            remedy="give document_id, a function that makes the id of a document",
        )
    page = metadata.get("page_label", metadata.get("page"))
    return name if page is None else f"{name}#page={page}"


def _is_random(document_id: str) -> bool:
    try:
        return UUID(document_id).version == 4
    except ValueError:
        return False


def _item(document_id: str, document: Document) -> SourceItem:
    content = document.text.encode("utf-8", "replace")  # a lone surrogate is nothing a collection can store
    resource = document.text_resource
    name = str(document.metadata.get("file_name") or document_id.partition("#")[0])
    is_markdown = _MARKDOWN in (resource.mimetype if resource else None, media_type_for(name))
    return SourceItem(
        document_id,
        _MARKDOWN if is_markdown else "text/plain",
        lambda: io.BytesIO(content),
        size_bytes=len(content),
        metadata=json.loads(json.dumps(document.metadata, default=str)),
    )
