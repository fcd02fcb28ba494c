"""Documents written by hand with their reviewed chunks. No test run writes these files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chunking.support import chunk, markdown

_TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["handbook", "table", "long_section"])
def test_chunks_are_as_reviewed(name: str) -> None:
    """Breadcrumb, text, offsets, tokens and kind of every chunk."""
    source = markdown((_TESTS / "fixtures" / "chunking" / f"{name}.md").read_text("utf-8"))
    drafts = [
        {
            "breadcrumb": draft.breadcrumb,
            "span": [draft.char_start, draft.char_end],
            "tokens": draft.token_count,
            "kind": draft.kind,
            "text": draft.text.split("\n"),
        }
        for draft in chunk("markdown-heading", source)
    ]
    expected = json.loads((_TESTS / "golden" / "chunking" / f"{name}.json").read_text("utf-8"))
    assert drafts == expected
