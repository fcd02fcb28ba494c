"""What people really have: run where the corpora lie beside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors import ExtractionContext, ExtractorRegistry, default_extractors
from qedge_dagster.sources import FolderSource, UnlistedPart
from tests.chunking.support import CHUNKERS, budget, chunker, wordpiece

_CORPORA = Path(__file__).resolve().parents[3] / "shared" / "corpora"


@pytest.mark.long
@pytest.mark.skipif(not _CORPORA.is_dir(), reason="the corpora are not beside the repository")
@pytest.mark.parametrize("name", CHUNKERS)
@pytest.mark.parametrize("folder", ["md", "txt"])
def test_no_chunk_of_the_corpora_is_over_budget(folder: str, name: str) -> None:
    """By the model's own tokenizer, special tokens included; and no chunk is blank."""
    limits = budget(wordpiece())
    subject = chunker(name, limits)
    registry = ExtractorRegistry(default_extractors())
    chunks = 0
    for item in FolderSource(_CORPORA / folder).items():
        assert not isinstance(item, UnlistedPart)
        try:
            source = registry.resolve(item).extract(item, ExtractionContext())
        except QedgeError:
            continue
        drafts = subject.chunk(source, pytest.fail)
        chunks += len(drafts)
        for draft in drafts:
            assert len(wordpiece().raw.encode(draft.embed_text)) <= limits.max_sequence_length
            assert draft.text.strip()
            assert len(draft.text) <= limits.max_characters
    assert chunks > 100
