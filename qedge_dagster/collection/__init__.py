"""The SQLite file that holds chunks, vectors and the full-text index, and the search over it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    # Late, because the modules of this package and `state` import one another.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
