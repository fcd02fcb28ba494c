"""An edit costs its own size, not the document's: counted in texts embedded by real runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median

import pytest

from qedge_dagster import FolderSource
from tests.pipeline.support import CountingEmbedder, contents, ingest, prose, tokenizer, write

_PARAGRAPHS = 500
_LONGEST = 150  # tokens


def paragraph(seed: int) -> str:
    """At most 150 tokens."""
    [text] = prose(seed, 1, longest=60)
    words = text.split()
    while tokenizer().count(" ".join(words)) > _LONGEST:
        words.pop()
    return " ".join(words)


def edit_word(paragraphs: list[str], chance: random.Random) -> None:
    position = chance.randrange(len(paragraphs))
    words = paragraphs[position].split()
    words[chance.randrange(len(words))] = f"edit{chance.randrange(10**6)}"
    paragraphs[position] = " ".join(words)


def edit_paragraph(paragraphs: list[str], chance: random.Random) -> None:
    position, fresh = chance.randrange(len(paragraphs)), paragraph(chance.randrange(10**9))
    match chance.choice(["insert", "delete", "rewrite"]):
        case "insert":
            paragraphs.insert(position, fresh)
        case "delete":
            del paragraphs[position]
        case _:
            paragraphs[position] = fresh


def costs(
    tmp_path: Path, name: str, edits: int, edit: Callable[[list[str], random.Random], None]
) -> tuple[list[int], float]:
    """Texts embedded by each edit's run, and the mean fill of the chunks in the end."""
    chance = random.Random(f"{name} {edit.__name__}")
    docs, db, embedder = tmp_path / "docs", tmp_path / "index.db", CountingEmbedder()
    paragraphs = [paragraph(number) for number in range(_PARAGRAPHS)]
    heading = "# One long section\n\n" if name.endswith(".md") else ""
    counts: list[int] = []
    for number in range(edits + 1):
        if number:
            edit(paragraphs, chance)
        write(docs, {name: heading + "\n\n".join(paragraphs) + "\n"})
        counts.append(ingest(db, FolderSource(docs), embedder).texts_embedded)
    fill = mean(int(str(row[9])) for row in contents(db)[0]) / 222
    assert counts.pop(0) > 100
    print(f"{name}, {edit.__name__}: median {median(counts)}, maximum {max(counts)}, mean fill {fill:.1%}")
    return counts, fill


@pytest.mark.parametrize("name", ["book.txt", "book.md"])
@pytest.mark.parametrize("edit", [edit_word, edit_paragraph])
@pytest.mark.parametrize("edits", [25, pytest.param(200, marks=pytest.mark.long)])
def test_an_edit_embeds_few_texts(
    tmp_path: Path, name: str, edit: Callable[[list[str], random.Random], None], edits: int
) -> None:
    """Median at most 2, maximum 4, in a text and in a Markdown section of 500 paragraphs, filled to 65 % or more."""
    counts, fill = costs(tmp_path, name, edits, edit)
    assert median(counts) <= 2
    assert max(counts) <= 4
    assert fill >= 0.65
