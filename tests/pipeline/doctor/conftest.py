"""A database of four documents, made once and copied for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.pipeline.doctor.damage import TEXT, source
from tests.pipeline.support import CountingEmbedder, ingest, write


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    ingest(folder / "index.db", source(write(folder / "docs", TEXT)), CountingEmbedder())
    return folder


@pytest.fixture
def docs(tmp_path: Path, template: Path) -> Path:
    return Path(shutil.copytree(template / "docs", tmp_path / "docs"))


@pytest.fixture
def db(tmp_path: Path, template: Path) -> Path:
    return Path(shutil.copy(template / "index.db", tmp_path / "index.db"))
