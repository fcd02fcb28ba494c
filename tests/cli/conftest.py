"""The real command line over a model that costs nothing: each token has a fixed random vector."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import qedge_dagster
from qedge_dagster.cli import main
from tests.embedding.onnx_file import write_model

PACKAGE = Path(qedge_dagster.__file__).parent
ROOT = PACKAGE.parent
VOCABULARY = PACKAGE / "embedding" / "data" / "vocab.txt"
DOCUMENTS = {
    "boats/mooring.md": "# Mooring\n\nTie the bow line to the iron ring first.\n\n## Storm\n\nDouble every rope.\n",
    "boats/engine.md": "# Engine\n\nClose the fuel tap after each trip. The key hangs in the shed.\n",
    "notes.txt": "The clubhouse opens at nine.\n\nCoffee costs two coins.\n",
}

Invoke = Callable[..., Result]


def _without_dagster(args: Sequence[object]) -> list[str]:
    """What is tested does not depend on Dagster, which costs seconds: test_ingest_dagster.py is about the run of it."""
    words = [str(arg) for arg in args]
    return [words[0], "--no-dagster", *words[1:]] if words[:1] == ["ingest"] and "--help" not in words else words


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    folder.mkdir()
    shutil.copy(VOCABULARY, folder / "vocab.txt")
    words = len(VOCABULARY.read_text("utf-8").splitlines())
    write_model(folder / "model.onnx", np.random.default_rng(7).normal(size=(words, 32)).astype(np.float32))
    profile = {"id": "tiny", "dimensions": 32, "max_sequence_length": 128}
    (folder / "profile.json").write_text(json.dumps(profile), "utf-8")
    return folder


def write_docs(folder: Path) -> Path:
    for name, text in DOCUMENTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write_docs(tmp_path / "docs")


@pytest.fixture
def qedge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Call the program in this process, in an empty folder, so that the default database is `qedge.db` there. It
    ingests without Dagster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("QEDGE_DB", raising=False)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)

    def invoke(*args: object, **extra: Any) -> Result:
        return CliRunner().invoke(main, _without_dagster(args), **extra)

    return invoke


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Path:
    """A database of the three documents, to copy."""
    folder = tmp_path_factory.mktemp("template")
    docs, database = write_docs(folder / "docs"), folder / "qedge.db"
    args = ["ingest", docs, "--db", database, "--model", model, "--source-id", "club"]
    result = CliRunner().invoke(main, _without_dagster(args))
    assert result.exit_code == 0, result.stderr
    return database


@pytest.fixture
def ingested(tmp_path: Path, docs: Path, template: Path) -> Path:  # noqa: ARG001 - the documents belong to it
    """`qedge.db` with the three documents, in the folder where `qedge` runs."""
    return Path(shutil.copy(template, tmp_path / "qedge.db"))


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More documents than are done before a signal arrives."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(2000):
        (folder / f"{number:04}.txt").write_text(f"Boat {number} lies at berth {number * 7}.", "utf-8")
    return folder


@contextmanager
def start(*args: object, env_changes: Mapping[str, str] | None = None, **extra: Any) -> Iterator[subprocess.Popen[str]]:
    """The program in a process of its own, which does not outlive the context."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **(env_changes or {})}
    environment.pop("DAGSTER_HOME", None)
    command = [sys.executable, "-m", "qedge_dagster.cli", *map(str, args)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    with subprocess.Popen(command, env=environment, **{**pipes, **extra}) as process:
        try:
            yield process
        finally:
            process.kill()


def finish(*args: object, **extra: Any) -> subprocess.CompletedProcess[str]:
    with start(*args, **extra) as process:
        stdout, stderr = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)
