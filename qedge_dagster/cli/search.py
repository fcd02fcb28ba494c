"""`qedge search`."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qedge_dagster.cli.opening import load_embedder, open_state
from qedge_dagster.cli.options import common, model_options
from qedge_dagster.cli.output import cells, emit, emit_json, fit, note, printable, terminal_width

if TYPE_CHECKING:
    from qedge_dagster.collection import Hit

_INDENT = "     "
_SNIPPET_LINES = 3

_EPILOG = """\b
Examples:
  qedge search "water damage" --keywords roof --keywords leak
  qedge search "how is the pump started?" --top 3 --json
  qedge search --mode keyword "GROUND FAULT"
  qedge search insurance --filter "document_id=contracts/*" --filter page=2..9

\b
Filters, all of which must hold:
  media_type=text/markdown       equal
  document_id=a.md,b.md          one of several
  document_id=notes/*            begins with
  page=3..7  page=3..  page=..7  from, to

\b
Columns of --filter:
  source_id, document_id, heading_path, page, block_kind, extractor_id, media_type,
  ordinal, token_count, created_utc, key"""


@click.command(epilog=_EPILOG, short_help="Find the passages that answer a question.")
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--keywords",
    multiple=True,
    help="Word or phrase for the keyword half. May be repeated.  [default: the words of QUERY]",
)
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "vector", "keyword"]),
    default="hybrid",
    show_default=True,
    help="By meaning (vector), by words (keyword, needs no model), or both.",
)
@click.option("--top", type=click.IntRange(1, 4096), default=10, show_default=True, help="How many chunks.")
@click.option(
    "--filter", "filters", multiple=True, help="Search only chunks that match. May be repeated.  [default: none]"
)
@model_options
@common
def command(
    query: tuple[str, ...],
    keywords: tuple[str, ...],
    mode: str,
    top: int,
    filters: tuple[str, ...],
    model: Path | None,
    profile: str | None,
    database: Path,
    collection: str,
    as_json: bool,
) -> None:
    """Find the chunks of text that answer QUERY, best first.

    The score of a hybrid search is made of the two ranks alone: 1.0 is a chunk that both halves put first. It says
    nothing about relevance, and the first hit of a question that the documents do not answer may have it too. Scores
    of different modes cannot be compared.
    """
    from qedge_dagster.collection import Collection, Filter

    if keywords and mode == "vector":
        raise click.UsageError("--keywords has no effect with --mode vector")
    text = " ".join(query)
    condition = Filter.parse(*filters) if filters else None
    with Collection.open(
        database, collection, embedder=lambda: load_embedder(model, profile, optimized=False)
    ) as opened:
        if mode == "hybrid":
            hits = opened.hybrid_search(text, list(keywords) or None, top, condition)
        elif mode == "vector":
            hits = opened.search(text, top=top, filter=condition)
        else:
            hits = opened.keyword_search(list(keywords) or text, top=top, filter=condition)
    if as_json:
        emit_json([_as_dict(hit) for hit in hits])
    elif hits:
        width = terminal_width()
        words = frozenset(re.findall(r"\w{3,}", " ".join([text, *keywords]).lower()))
        with open_state(database, collection) as state:
            show_source = len(state.source_ids()) > 1
        emit(
            "\n\n".join(
                _shown(rank, hit, width, words, show_source=show_source) for rank, hit in enumerate(hits, start=1)
            )
        )
    else:
        note("nothing found")


def _as_dict(hit: Hit) -> dict[str, object]:
    chunk = hit.chunk
    return {
        "score": hit.score,
        "source_id": chunk.source_id,
        "document_id": chunk.document_id,
        "key": chunk.key,
        "ordinal": chunk.ordinal,
        "breadcrumb": chunk.breadcrumb,
        "text": chunk.text,
        "page": chunk.page,
        "char_start": chunk.char_start,
        "char_end": chunk.char_end,
        "block_kind": chunk.block_kind,
        "media_type": chunk.media_type,
        "vector_rank": hit.vector_rank,
        "keyword_rank": hit.keyword_rank,
    }


def _shown(rank: int, hit: Hit, width: int, words: frozenset[str], *, show_source: bool) -> str:
    chunk = hit.chunk
    head = f"{rank:>3}. {hit.score:.4f}  "
    page = f"  page {chunk.page}" if chunk.page > 0 else ""
    lines = [head + fit(printable(chunk.document_id), width - len(head) - len(page), keep_end=True) + page]
    if show_source:
        lines.append(_INDENT + fit(printable(f"source {chunk.source_id}"), width - len(_INDENT), keep_end=True))
    if chunk.breadcrumb:
        lines.append(_INDENT + fit(printable(chunk.breadcrumb), width - len(_INDENT), keep_end=True))
    lines.extend(_INDENT + line for line in _snippet(chunk.text, words, width - len(_INDENT)))
    return "\n".join(lines)


def _snippet(text: str, words: frozenset[str], width: int) -> list[str]:
    """A few lines of `text`, where most of `words` are."""
    flat = printable(" ".join(text.split()))
    room = width * _SNIPPET_LINES
    start = _best_start(flat, words, room) if cells(flat) > room else 0
    shown = fit(("…" if start else "") + flat[start:], room - width // 4)
    if cells(shown) > len(shown):  # wide characters, and textwrap counts characters
        width //= 2
    return textwrap.wrap(shown, width, max_lines=_SNIPPET_LINES, placeholder="…")


def _best_start(text: str, words: frozenset[str], room: int) -> int:
    """Where to begin so that the longest of `words` are in the next `room` characters, with some text before them."""
    found = [(m.start(), m[0].lower()) for m in re.finditer(r"\w+", text) if m[0].lower() in words]
    best, best_weight = 0, 0
    for first, _ in found:
        weight = sum(len(word) for word in {word for at, word in found if first <= at < first + room // 2})
        if weight > best_weight:
            best, best_weight = first, weight
    start = max(0, min(best - room // 6, len(text) - room))
    return text.find(" ", start) + 1 if start else 0
