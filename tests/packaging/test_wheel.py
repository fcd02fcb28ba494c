"""What is in the wheel."""

from __future__ import annotations

import email
import hashlib
import zipfile
from pathlib import Path

EXTRAS = {"all", "docx", "fsspec", "llamaindex", "onnx", "pdf", "ui"}


def _read(wheel: Path, suffix: str) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(suffix)]
        return archive.read(name)


def test_data_and_licences(wheel: Path) -> None:
    """The vocabulary, the settings of a Dagster home, the type marker, the licence, the notice and the vocabulary's own
    licence are in the wheel."""
    vocabulary = _read(wheel, "qedge_dagster/embedding/data/vocab.txt")
    assert hashlib.sha256(vocabulary).hexdigest() == "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
    assert vocabulary.count(b"\n") == 30522
    assert _read(wheel, "qedge_dagster/orchestration/dagster.yaml").startswith(b"telemetry:\n  enabled: false\n")
    assert _read(wheel, "qedge_dagster/py.typed") == b""
    assert b"MIT License" in _read(wheel, "licenses/LICENSE")
    assert b"vocab.txt" in _read(wheel, "licenses/NOTICE")
    assert b"Apache License" in _read(wheel, "licenses/LICENSES/Apache-2.0.txt")


def test_nothing_else(wheel: Path) -> None:
    """Only the package and its metadata: no tests, examples or scripts."""
    with zipfile.ZipFile(wheel) as archive:
        folders = {name.partition("/")[0] for name in archive.namelist()}
    assert {folder.rpartition(".")[2] for folder in folders} == {"qedge_dagster", "dist-info"}


def test_metadata(wheel: Path) -> None:
    """The command, the extras and the range of Python versions are declared."""
    metadata = email.message_from_bytes(_read(wheel, ".dist-info/METADATA"))
    assert metadata["Requires-Python"] == "<3.14,>=3.10"
    assert metadata["License-Expression"] == "MIT"
    assert set(metadata.get_all("Provides-Extra", [])) == EXTRAS
    assert b"qedge = qedge_dagster.cli:main" in _read(wheel, ".dist-info/entry_points.txt")
