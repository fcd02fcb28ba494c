"""The wheel in environments that hold nothing else: without extras, and with each extra alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging import first_document
from tests.packaging.conftest import ROOT

pytestmark = pytest.mark.long

#: The library that each extra brings.
BRINGS = {
    "onnx": "onnxruntime",
    "pdf": "pdfminer",
    "docx": "docx2txt",
    "ui": "dagster_webserver",
    "llamaindex": "llama_index",
}
#: A document of the sample corpus that only this extra reads, and words of it.
SAMPLES = {"pdf": ("wardens/rescue.pdf", "rescue sledge"), "docx": ("club/minutes.docx", "elected treasurer")}
EXTRACT = """
import sys
from qedge_dagster.extractors import ExtractionContext, ExtractorRegistry, default_extractors
from qedge_dagster.sources import FolderSource
(item,) = FolderSource(sys.argv[1], sys.argv[2]).items()
print(ExtractorRegistry(default_extractors()).resolve(item).extract(item, ExtractionContext()).text)
"""
#: Without the extra `[onnx]`: chunks of a document from our reader, cut by whatever tokenizer.
CUT = """
import sys
from pathlib import Path
import qedge_dagster.embedding
from qedge_dagster import CallableEmbedder, FolderSource, ModelProfile
from qedge_dagster.bridges.llamaindex import QedgeNodeParser, QedgeReader
from qedge_dagster.chunking.tokenizer import HuggingFaceTokenizer
tokenizer = HuggingFaceTokenizer.from_file(Path(qedge_dagster.embedding.__file__).parent / "data" / "vocab.txt")
parser = QedgeNodeParser(CallableEmbedder(len, ModelProfile("none", 3, 256), tokenizer))
print(parser(QedgeReader(FolderSource(sys.argv[1], "water.md")).load_data())[0].ref_doc_id)
"""
LIST = """
import fsspec
from qedge_dagster import FsspecSource
fsspec.filesystem("memory").pipe_file("/docs/a.md", b"# A")
print(*(item.document_id for item in FsspecSource("memory://docs").items()))
"""
EMBED_BY_DEFAULT = "from qedge_dagster.embedding import default_embedder as d; print(d().embed_query('boat').shape)"


def make_environment(folder: Path, requirement: str) -> Path:
    """A virtual environment with one requirement, and its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt"), requirement], check=True)
    return python


def run(python: Path, *arguments: str, cwd: Path) -> str:
    """Output of that Python, isolated from this checkout and from the user's packages."""
    done = subprocess.run([str(python), "-I", *arguments], capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def installed(python: Path, cwd: Path) -> set[str]:
    """The extras whose library that Python finds."""
    code = f"from importlib.util import find_spec as f; print(*(e for e, m in {BRINGS}.items() if f(m)))"
    return set(run(python, "-c", code, cwd=cwd).split())


def ingest_first_document(python: Path, folder: Path) -> str:
    return run(python, str(Path(first_document.__file__)), str(folder), cwd=folder)


def test_no_extras(wheel: Path, tmp_path: Path) -> None:
    """The bare wheel, away from the checkout, ingests one Markdown document with an embedder of one's own; without one
    the command says in one line which extra is missing."""
    python = make_environment(tmp_path / "venv", str(wheel))
    assert installed(python, tmp_path) == set()
    assert ingest_first_document(python, tmp_path) == ""
    qedge = [str(python.with_name("qedge")), "ingest", "documents", "--db", "other.db"]
    refused = subprocess.run(qedge, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert refused.returncode == 1
    assert "6208" in refused.stderr
    assert 'pip install "qedge-dagster[onnx]"' in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("extra", BRINGS)
def test_one_extra_alone(wheel: Path, tmp_path: Path, extra: str) -> None:
    """Each extra brings its own library and no other's, and the first document is ingested as without it; its format
    is read."""
    python = make_environment(tmp_path / "venv", f"qedge-dagster[{extra}] @ {wheel.as_uri()}")
    assert installed(python, tmp_path) == {extra}
    assert ingest_first_document(python, tmp_path) == ""
    if extra == "onnx":
        assert run(python, "-c", EMBED_BY_DEFAULT, cwd=tmp_path) == "(384,)"
    if extra == "llamaindex":
        assert run(python, "-c", CUT, str(ROOT / "examples" / "docs" / "wardens"), cwd=tmp_path) == "water.md"
    if extra in SAMPLES:
        name, words = SAMPLES[extra]
        assert words in run(python, "-c", EXTRACT, str(ROOT / "examples" / "docs"), name, cwd=tmp_path)


def test_fsspec_alone(wheel: Path, tmp_path: Path) -> None:
    """A store is listed, with no library of another extra."""
    python = make_environment(tmp_path / "venv", f"qedge-dagster[fsspec] @ {wheel.as_uri()}")
    assert installed(python, tmp_path) == set()
    assert run(python, "-c", LIST, cwd=tmp_path) == "a.md"
