"""Real and odd files from outside the repository, where they are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from qedge_dagster.documents import normalize_text
from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors import ExtractionContext, ExtractorRegistry, default_extractors
from qedge_dagster.sources import FolderSource, SourceItem

_CORPORA = Path(__file__).parents[3] / "shared" / "corpora"
_BINARY = {f"6104 {name}" for name in ("all_nul.txt", "binary_random.txt", "elf_named_log.log", "png_named_txt.txt")}

pytestmark = pytest.mark.skipif(not _CORPORA.is_dir(), reason="the corpora are not part of the repository")


def _items(folder: str) -> list[SourceItem]:
    return [item for item in FolderSource(_CORPORA / folder).items() if isinstance(item, SourceItem)]


@pytest.mark.parametrize("folder", ["md/odd", "md/rust-book", "txt/odd", "txt/encodings"])
def test_every_file_has_an_outcome(folder: str) -> None:
    """A document whose blocks lie in its text, or a refusal: exactly the binary files are refused."""
    registry = ExtractorRegistry(default_extractors())
    refused: set[str] = set()
    for item in _items(folder):
        if item.document_id.endswith(".tsv"):
            continue
        try:
            document = registry.resolve(item).extract(item, ExtractionContext())
        except QedgeError as error:
            refused.add(f"{error.code} {item.document_id}")
            continue
        document.text.encode("utf-8")
        ends = [0, *(block.end for block in document.blocks)]
        assert all(end <= block.start < block.end for end, block in zip(ends, document.blocks, strict=False))
        assert ends[-1] <= len(document.text)
    assert refused == (_BINARY if folder == "txt/odd" else set())


def test_encodings_give_the_right_characters() -> None:
    """At least 99.9 % of the characters are those of the right text, as far as the encoding has them."""
    registry = ExtractorRegistry(default_extractors())
    for item in _items("txt/encodings"):
        language, _, rest = item.document_id.partition("_")
        if "/" in rest:
            continue
        document = registry.resolve(item).extract(item, ExtractionContext())
        gold = (_CORPORA / "txt/encodings/gold_utf8" / f"{language}.txt").read_bytes().decode("utf-8")
        encoding = document.metadata["encoding"]
        gold = normalize_text(gold.encode(encoding, "replace").decode(encoding))
        assert len(document.text) == len(gold), item.document_id
        same = sum(ours == theirs for ours, theirs in zip(document.text, gold, strict=True))
        assert same >= 0.999 * len(gold), item.document_id
