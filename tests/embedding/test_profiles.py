"""Model profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from qedge_dagster.embedding import DEFAULT_PROFILE, PROFILES, ModelProfile
from qedge_dagster.errors import QedgeError


def test_built_in_profiles() -> None:
    """The four built-in profiles, as the models' authors publish their numbers and prefixes."""
    assert [tuple(getattr(p, name) for name in ModelProfile.__slots__) for p in PROFILES.values()] == [
        ("all-minilm-l6-v2-int8", 384, 256, "mean", "", ""),
        ("all-minilm-l6-v2-fp32", 384, 256, "mean", "", ""),
        ("bge-small-en-v1.5", 384, 512, "cls", "", "Represent this sentence for searching relevant passages: "),
        ("nomic-embed-text-v1.5-int8", 768, 512, "mean", "search_document: ", "search_query: "),
    ]
    assert DEFAULT_PROFILE.id == "all-minilm-l6-v2-int8"


def test_from_file(tmp_path: Path) -> None:
    """A JSON object with the field names; prefixes keep their trailing space."""
    path = tmp_path / "profile.json"
    path.write_text('{"id": "é", "dimensions": 8, "max_sequence_length": 64, "document_prefix": "doc: "}', "utf-8")
    assert ModelProfile.from_file(path) == ModelProfile("é", 8, 64, "mean", "doc: ")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "no profile could be read"),
        ("[]", "holds no JSON object"),
        ("\udcff", "no profile could be read"),
        ('{"id": "a", "dimensions": 8}', "lacks max_sequence_length"),
        (
            '{"id": "a", "dimensions": 8, "max_sequence_length": 64, "pool": "cls"}',
            "has no pool; it has id, dimensions",
        ),
        ('{"id": "a", "dimensions": "8", "max_sequence_length": 64}', "dimensions must be int, not str"),
        ('{"id": "a", "dimensions": true, "max_sequence_length": 64}', "dimensions must be int, not bool"),
        ('{"id": "a", "dimensions": 0, "max_sequence_length": 64}', "must be positive"),
        ('{"id": "a", "dimensions": 8, "max_sequence_length": 64, "pooling": "max"}', "must be mean or cls, not 'max'"),
        ('{"id": "a\\u001f", "dimensions": 8, "max_sequence_length": 64}', "no control characters"),
    ],
)
def test_bad_files(tmp_path: Path, content: str, reason: str) -> None:
    """Whatever is wrong with a profile file is 6005 and named."""
    path = tmp_path / "profile.json"
    path.write_text(content, "utf-8", errors="surrogateescape")
    with pytest.raises(QedgeError, match=reason) as caught:
        ModelProfile.from_file(path)
    assert caught.value.code == 6005


def test_missing_file(tmp_path: Path) -> None:
    """A missing file is 6005 too."""
    with pytest.raises(QedgeError, match="no profile could be read") as caught:
        ModelProfile.from_file(tmp_path / "profile.json")
    assert caught.value.code == 6005
