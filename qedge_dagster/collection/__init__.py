"""The SQLite file that holds chunks, vectors and the full-text index, and the search over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qedge_dagster.lazy import names_of

if TYPE_CHECKING:
    from qedge_dagster.collection.chunk import StoredChunk
    from qedge_dagster.collection.collection import Collection, Hit
    from qedge_dagster.collection.filters import Equal, Filter, In, Prefix, Range

__all__ = ["Collection", "Equal", "Filter", "Hit", "In", "Prefix", "Range", "StoredChunk"]

_HOMES = {
    "Collection": "collection",
    "Equal": "filters",
    "Filter": "filters",
    "Hit": "collection",
    "In": "filters",
    "Prefix": "filters",
    "Range": "filters",
    "StoredChunk": "chunk",
}

# Late also because the modules of this package and `state` import one another.
__getattr__ = names_of(__name__, _HOMES)
