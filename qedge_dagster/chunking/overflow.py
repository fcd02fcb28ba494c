"""What to do with a block that is over the budget by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from qedge_dagster.chunking.base import ChunkBudget, Overflow
from qedge_dagster.chunking.candidates import rank
from qedge_dagster.chunking.cutting import Region
from qedge_dagster.chunking.layout import Layout, Unit
from qedge_dagster.chunking.token_index import TokenIndex
from qedge_dagster.errors import QedgeError

__all__ = ["apply_overflow"]


def apply_overflow(
    policy: Overflow,
    regions: Sequence[Region],
    layout: Layout,
    tokens: TokenIndex,
    budget: ChunkBudget,
    warn: Callable[[str], None],
) -> list[Region]:
    """`split` leaves the regions as they are; `truncate` takes the excess of each long block out of them, with one
    warning each; `throw` raises `QedgeError` 6152 at the first."""
    if policy == "split":
        return list(regions)
    holes: list[tuple[int, int]] = []
    for unit in layout.units:
        count = tokens.count(unit.start, unit.end)
        if count <= budget.max_tokens and unit.end - unit.start <= budget.max_characters:
            continue
        size = f"a {unit.kind} of {count} tokens and {unit.end - unit.start} characters at {unit.start}"
        limit = f"{budget.max_tokens} tokens and {budget.max_characters} characters"
        if policy == "throw":
            raise QedgeError(6152, f"{size} is over {limit}")
        holes.append((_kept_end(unit, layout, tokens, budget), unit.end))
        warn(f"{size} was truncated to {limit}")
    return [part for region in regions for part in _without(region, holes)]


def _kept_end(unit: Unit, layout: Layout, tokens: TokenIndex, budget: ChunkBudget) -> int:
    first, _ = tokens.span(unit.start, unit.end)
    limit = min(tokens.start(first + budget.max_tokens), unit.start + budget.max_characters, unit.end)
    for positions in (layout.sentences, layout.words):
        index = rank(positions, limit, "right") - 1
        if index >= 0 and positions[index] > unit.start:
            return int(positions[index])
    return layout.graphemes.nearest(limit, unit.start + 1, limit) or limit


def _without(region: Region, holes: Sequence[tuple[int, int]]) -> list[Region]:
    parts: list[Region] = []
    start = region.start
    for hole_start, hole_end in holes:
        if start < hole_end and hole_start < region.end:
            parts.append(replace(region, start=start, end=max(start, hole_start)))
            start = max(start, hole_end)
    parts.append(replace(region, start=min(start, region.end)))
    return [part for part in parts if part.start < part.end]
