"""Metadata filters of LlamaIndex over the rows of a collection.

A condition on a document's id becomes SQL. Any other one is tried on the metadata of every node, in Python and with
LlamaIndex's own meaning of its operators, since metadata of others has no columns; the nodes that pass are then what is
searched, so no filter costs a hit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from qedge_dagster.collection.filters import All, Equal, Filter, In

__all__ = ["matcher", "split_filters"]

#: What LlamaIndex's stores call the document of a node.
_DOCUMENT = frozenset({"document_id", "doc_id", "ref_doc_id"})


def split_filters(filters: MetadataFilters | None) -> tuple[Filter, MetadataFilters | None]:
    """What SQL can say of them, and what is left."""
    if filters is None or not filters.filters:
        return All(()), None
    if filters.condition not in (None, FilterCondition.AND):
        return All(()), filters
    said: list[Filter] = []
    left: list[MetadataFilter | MetadataFilters] = []
    for filter_ in filters.filters:
        condition = None if isinstance(filter_, MetadataFilters) else _of_document(filter_)
        if condition is None:
            left.append(filter_)
        else:
            said.append(condition)
    return All(tuple(said)), MetadataFilters(filters=left) if left else None


def _of_document(filter_: MetadataFilter) -> Filter | None:
    value = filter_.value
    if filter_.key not in _DOCUMENT:
        return None
    if filter_.operator == FilterOperator.EQ and isinstance(value, str):
        return Equal("document_id", value)
    if filter_.operator == FilterOperator.IN and isinstance(value, list):
        return In("document_id", [each for each in value if isinstance(each, str)])
    return None


def matcher(filters: MetadataFilters) -> Callable[[Mapping[str, Any]], bool]:
    """Whether metadata passes. LlamaIndex's own function knows no filters within filters; these are joined here."""
    tests = [matcher(each) if isinstance(each, MetadataFilters) else _single(each) for each in filters.filters]
    if filters.condition == FilterCondition.OR:
        return lambda metadata: any(test(metadata) for test in tests)
    if filters.condition == FilterCondition.NOT:
        return lambda metadata: not any(test(metadata) for test in tests)
    return lambda metadata: all(test(metadata) for test in tests)


def _single(filter_: MetadataFilter) -> Callable[[Mapping[str, Any]], bool]:
    def passes(metadata: Mapping[str, Any]) -> bool:
        try:
            return build_metadata_filter_fn(lambda _: metadata, MetadataFilters(filters=[filter_]))("")
        except TypeError:  # a number compared with a text, or a text looked for in a number
            return False

    return passes
