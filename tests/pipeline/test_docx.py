"""A Word document as it is edited and saved again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from qedge_dagster.pipeline.events import DocumentIndexed
from qedge_dagster.sources import FolderSource
from tests.extractors.docx.builder import build
from tests.pipeline.support import CountingEmbedder, events_of, ingest

_WORDS = (
    "harbour",
    "lamp",
    "keeper",
    "storm",
    "signal",
    "vessel",
    "pilot",
    "tide",
    "anchor",
    "mist",
    "beacon",
    "cliff",
)
_PARAGRAPHS = 500  # about 100 pages
_STYLES = '<w:style w:type="paragraph" w:styleId="T1"><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>'


def _paragraphs(rng: random.Random) -> list[str]:
    texts = (" ".join(rng.choices(_WORDS, k=rng.randrange(60, 120))) + "." for _ in range(_PARAGRAPHS))
    return [text.capitalize() for text in texts]


def _document(paragraphs: list[str], stamp: tuple[int, int, int, int, int, int] = (2020, 1, 1, 0, 0, 0)) -> bytes:
    body = "".join(
        (f'<w:p><w:pPr><w:pStyle w:val="T1"/></w:pPr><w:r><w:t>Part {n // 25}</w:t></w:r></w:p>' if n % 25 == 0 else "")
        + f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"
        for n, text in enumerate(paragraphs)
    )
    return build({"word/document.xml": body, "word/styles.xml": _STYLES}, stamp=stamp)


@pytest.mark.parametrize("place", [0, 249, 499])
def test_an_edited_paragraph_costs_its_own_chunks(tmp_path: Path, place: int) -> None:
    """One paragraph of a hundred pages rewritten: at most four texts are embedded, all other rows stay."""
    rng = random.Random(place)
    paragraphs = _paragraphs(rng)
    source, embedder = tmp_path / "docs", CountingEmbedder()
    source.mkdir()
    (source / "a.docx").write_bytes(_document(paragraphs))
    first = ingest(tmp_path / "a.db", FolderSource(source), embedder)
    paragraphs[place] = " ".join(rng.choices(_WORDS, k=80)) + "."
    (source / "a.docx").write_bytes(_document(paragraphs))
    second = ingest(tmp_path / "a.db", FolderSource(source), embedder)
    assert first.texts_embedded > 200
    assert 1 <= second.texts_embedded <= 4
    assert second.chunks_unchanged >= first.chunks_added - 4


def test_saved_again_without_a_change(tmp_path: Path) -> None:
    """Other bytes, the same text: nothing is embedded, and every stage from extraction on has the version it had."""
    paragraphs = _paragraphs(random.Random(1))[:20]
    source, embedder = tmp_path / "docs", CountingEmbedder()
    source.mkdir()
    (source / "a.docx").write_bytes(_document(paragraphs))
    ingest(tmp_path / "a.db", FolderSource(source), embedder)
    (source / "a.docx").write_bytes(_document(paragraphs, (2021, 2, 3, 4, 5, 6)))
    events = events_of(tmp_path / "a.db", FolderSource(source), embedder)
    [indexed] = [event for event in events if isinstance(event, DocumentIndexed)]
    assert indexed.result.texts_embedded == 0
    assert indexed.versions == indexed.before
    assert indexed.result.chunks_added == indexed.result.chunks_removed == indexed.result.chunks_repaired == 0
