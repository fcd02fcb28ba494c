"""What can be said of a document before it is read: who extracts it, and whether the same bytes would be skipped."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.base import Extractor
from qedge_dagster.pipeline.options import RunOptions
from qedge_dagster.pipeline.stages import Stages
from qedge_dagster.sources.base import SourceItem
from qedge_dagster.state import DocumentRow

__all__ = ["Gate", "Standing"]


@dataclass(frozen=True, slots=True)
class Standing:
    """`extractor` is None where none takes the document. `trusted` is the hash of a document that may be skipped
    unread, as its size and time are believed."""

    extractor: Extractor | None
    recipe_hash: bytes
    same_recipe: bool
    may_skip: bool
    trusted: bytes | None


class Gate:
    """`damaged` are documents that the collection has lost rows of: never unchanged."""

    def __init__(self, stages: Stages, options: RunOptions, damaged: Collection[str]) -> None:
        self._stages = stages
        self._options = options
        self._damaged = damaged

    def standing(self, item: SourceItem, before: DocumentRow | None) -> Standing:
        try:
            extractor = self._stages.registry.resolve(item)
        except QedgeError as error:
            if error.code != 6101:
                raise
            extractor = None
        recipe_hash = self._stages.recipe_hash(extractor)
        same_recipe = before is not None and before.recipe_hash == recipe_hash
        may_skip = same_recipe and not self._options.force and item.document_id not in self._damaged
        trusted = before.content_hash if before is not None and may_skip and self._trusted(item, before) else None
        return Standing(extractor, recipe_hash, same_recipe, may_skip, trusted)

    def _trusted(self, item: SourceItem, before: DocumentRow) -> bool:
        return (
            self._options.trust_timestamps
            and item.size_bytes is not None
            and item.modified_utc is not None
            and (item.size_bytes, item.modified_utc) == (before.size_bytes, before.modified_utc)
        )
