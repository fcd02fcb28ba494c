"""The contract of an extractor, and the registry that picks one for an item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from qedge_dagster.documents import ExtractedDocument, media_type_for
from qedge_dagster.errors import QedgeError
from qedge_dagster.sources.base import SourceItem

__all__ = ["ExtractionContext", "Extractor", "ExtractorRegistry", "fingerprint"]


@dataclass(frozen=True, slots=True)
class ExtractionContext:
    """What an extractor is told besides the item."""

    normalize_text: bool = True


class Extractor(Protocol):
    """Bytes → `ExtractedDocument`. Pure: no database, no clock, no global state.

    Bump `version` whenever the output for an identical input changes: it is part of the recipe. An option that changes
    the output is named in `variant` (empty for the defaults), which is part of the recipe too.
    """

    @property
    def id(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def variant(self) -> str: ...
    @property
    def extensions(self) -> frozenset[str]:
        """Lower case, with the dot."""
        ...

    @property
    def media_types(self) -> frozenset[str]: ...

    def can_extract(self, item: SourceItem) -> bool:
        """A last word after media type or extension matched."""
        ...

    def extract(self, item: SourceItem, context: ExtractionContext) -> ExtractedDocument:
        """Read `item.open()` as a stream and return the document.

        Raises `QedgeError` 6102 to 6107 for documents that cannot be had; one that can be had in part is returned with
        the reason in `incomplete`. `OSError` from the stream passes through.
        """
        ...


def fingerprint(extractor: Extractor) -> str:
    """`id:version`, and `+variant` where an option changes the output."""
    return f"{extractor.id}:{extractor.version}" + (f"+{extractor.variant}" if extractor.variant else "")


#: The extra that brings the extractor of a type.
_EXTRAS = {
    media_type_for(".pdf"): "pdf",
    media_type_for(".docx"): "docx",
    media_type_for(".docm"): "docx",
    media_type_for(".dotx"): "docx",
    media_type_for(".dotm"): "docx",
}


class ExtractorRegistry:
    """Finds the extractor of an item: by media type first, then by extension; earlier registrations win."""

    def __init__(self, extractors: Iterable[Extractor]) -> None:
        self._extractors = tuple(extractors)
        seen: set[str] = set()
        for extractor in self._extractors:
            if extractor.id in seen:
                raise QedgeError(6004, f"two extractors have the id {extractor.id!r}")
            seen.add(extractor.id)
        # Asked for with every document, and there are few types.
        self._of_type = lru_cache(maxsize=1024)(self._find_of_type)

    def __iter__(self) -> Iterator[Extractor]:
        return iter(self._extractors)

    def resolve(self, item: SourceItem) -> Extractor:
        """Raises `QedgeError` 6101 when no extractor takes the item."""
        for extractor in self._of_type(item.media_type):
            if extractor.can_extract(item):
                return extractor
        suffix = _suffix(item.document_id)
        for extractor in self._extractors:
            if suffix in extractor.extensions and extractor.can_extract(item):
                return extractor
        media_type = _essence(item.media_type)
        extra = _EXTRAS.get(media_type) or _EXTRAS.get(media_type_for(suffix))
        if extra is not None:
            raise QedgeError(
                6101,
                # In the message, which is recorded: a remedy of its own would be lost to whoever looks later.
                f'no extractor for {suffix or item.media_type}: pip install "qedge-dagster[{extra}]" brings one',
            )
        raise QedgeError(6101, f"no extractor for {suffix or 'a name without extension'} ({item.media_type})")

    def _find_of_type(self, media_type: str) -> tuple[Extractor, ...]:
        essence = _essence(media_type)
        return tuple(extractor for extractor in self._extractors if essence in extractor.media_types)


def _essence(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def _suffix(document_id: str) -> str:
    """As `PurePosixPath.suffix`, in lower case, at a tenth of its time: it is asked for with every document."""
    name = document_id[document_id.rfind("/") + 1 :]
    dot = name.rfind(".")
    return name[dot:].lower() if 0 < dot < len(name) - 1 else ""
