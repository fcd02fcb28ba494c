"""Some documents of a source, chosen by their ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qedge_dagster.sources.base import Source, SourceItem, UnlistedPart

__all__ = ["SelectedDocuments"]


class SelectedDocuments:
    """The items of `source` whose ids are in `document_ids`. The listing ends with the last of them.

    After a listing, `missing` are the ids that did not come, and `source_empty` says that nothing at all came.
    """

    def __init__(self, source: Source, document_ids: Iterable[str]) -> None:
        self.source_id = source.source_id
        self.missing = set(document_ids)
        self.source_empty = True
        self._source = source
        self._wanted = frozenset(self.missing)

    def items(self) -> Iterator[SourceItem | UnlistedPart]:
        self.missing, self.source_empty = set(self._wanted), True
        if not self.missing:
            return
        for item in self._source.items():
            if isinstance(item, UnlistedPart):
                yield item
                continue
            self.source_empty = False
            if item.document_id in self._wanted:
                self.missing.discard(item.document_id)
                yield item
                if not self.missing:
                    return
