"""Sections: the headings of a document, what stands under each, and which short ones belong together."""

from __future__ import annotations

from dataclasses import dataclass

from qedge_dagster.chunking.base import ChunkBudget
from qedge_dagster.chunking.breadcrumbs import sanitize_heading
from qedge_dagster.chunking.cutting import Region
from qedge_dagster.chunking.layout import Layout, Unit
from qedge_dagster.chunking.token_index import TokenIndex

__all__ = ["section_regions"]


@dataclass(frozen=True, slots=True)
class _Section:
    """`[start, end)` with its heading, `body` without; `level` 0 is the text before the first heading."""

    level: int
    path: tuple[str, ...]
    parent: tuple[str, ...]
    start: int
    body: int
    end: int


def section_regions(
    layout: Layout, tokens: TokenIndex, budget: ChunkBudget, split_levels: frozenset[int]
) -> list[Region]:
    """One region for each section, without its heading line, which is in the heading path.

    Short sections in a row, siblings without children, form a region together: the verbatim slice, heading lines
    included, under the path of their parent. So does a short one and the longer sibling after it, if the two fit.
    A heading with nothing under it, not even a subheading, is text.
    """
    sections = _sections(layout, split_levels)
    regions: list[Region] = []
    position = 0
    while position < len(sections):
        stop = _short_run(sections, position, tokens, budget)
        if stop - position > 1:
            run = sections[position:stop]
            regions.append(Region(run[0].start, run[-1].end, run[0].parent, whole_units=True))
        else:
            stop = position + 1
            regions += _single(layout, sections, position)
        position = stop
    return regions


def _single(layout: Layout, sections: list[_Section], position: int) -> list[Region]:
    section = sections[position]
    start, end = layout.trim(section.body, section.end)
    if start < end:
        return [Region(start, end, section.path)]
    has_child = position + 1 < len(sections) and sections[position + 1].level > section.level
    if section.level == 0 or has_child:
        return []
    return [Region(section.start, section.end, section.parent)]


def _short_run(sections: list[_Section], position: int, tokens: TokenIndex, budget: ChunkBudget) -> int:
    """Where the sections that belong together end: just after `position` if it stands alone."""

    def is_short(section: _Section) -> bool:
        return tokens.count(section.body, section.end) < budget.min_tokens

    first = sections[position]
    if first.level == 0 or not is_short(first):
        return position + 1
    stop = position + 1
    while stop < len(sections) and sections[stop].level == first.level and is_short(sections[stop]):
        stop += 1
    if stop < len(sections) and sections[stop].level == first.level:
        length = tokens.count(first.start, sections[stop - 1].end)
        whole = tokens.count(first.start, sections[stop].end)
        characters = sections[stop].end - first.start
        if length < budget.min_tokens and whole <= budget.max_tokens and characters <= budget.max_characters:
            stop += 1
    return stop


def _sections(layout: Layout, split_levels: frozenset[int]) -> list[_Section]:
    headings = [unit for unit in layout.units if unit.kind == "heading" and unit.level in split_levels]
    ends = [heading.start for heading in headings] + [len(layout.text)]
    sections = [_Section(0, (), (), 0, 0, ends[0])]
    open_headings: list[tuple[int, str]] = []
    for heading, end in zip(headings, ends[1:], strict=True):
        while open_headings and open_headings[-1][0] >= heading.level:
            open_headings.pop()
        parent = tuple(title for _, title in open_headings if title)
        open_headings.append((heading.level, _title(layout, heading)))
        path = tuple(title for _, title in open_headings if title)
        sections.append(_Section(heading.level, path, parent, heading.start, heading.end, end))
    return sections


def _title(layout: Layout, heading: Unit) -> str:
    return sanitize_heading(layout.text[slice(*heading.title)]) if heading.title else ""
