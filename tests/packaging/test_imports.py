"""What importing and using the library loads, seen from fresh interpreters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import qedge_dagster
from tests.packaging import first_document
from tests.packaging.first_document import OPTIONAL

ROOT = Path(qedge_dagster.__file__).parents[1]
LOADED = f"import sys; print(*(name for name in {OPTIONAL} if name in sys.modules))"


def run(*arguments: str) -> str:
    """Output of a fresh interpreter in which every warning is an error, and which therefore printed none."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def libraries_of(module: str) -> set[str]:
    """What an interpreter has besides the standard library once it has imported the module, and did not have before."""
    code = "import sys{}; print(*{{m.partition('.')[0] for m in sys.modules}} - sys.stdlib_module_names)"
    return set(run("-c", code.format(f", {module}")).split()) - set(run("-c", code.format("")).split())


def test_import_loads_no_optional_library() -> None:
    """`import qedge_dagster` loads neither Dagster, nor a model runtime, nor a parser of an extra, nor pandas."""
    assert run("-c", f"import qedge_dagster; {LOADED}") == ""


def test_import_loads_no_library_at_all() -> None:
    """`import qedge_dagster` loads nothing but the standard library and itself."""
    assert libraries_of("qedge_dagster") == {"qedge_dagster"}


@pytest.mark.parametrize("name", qedge_dagster.__all__)
def test_every_public_name_exists(name: str) -> None:
    """Each name in `__all__` can be imported from the package."""
    assert getattr(qedge_dagster, name) is not None


def test_public_api_loads_no_optional_library() -> None:
    """All public names together load none of the optional libraries, and give no warning."""
    assert run("-c", f"from qedge_dagster import *; {LOADED}") == ""


def test_the_process_that_extracts_starts_light() -> None:
    """It loads no parser before the first document is there."""
    assert libraries_of("qedge_dagster.extractors.worker") == {"qedge_dagster", "xxhash"}


def test_first_document_without_extras(tmp_path: Path) -> None:
    """With every library of the extras, Dagster, pandas and pyarrow impossible to import, one Markdown document is
    ingested with an embedder of one's own, found, and skipped the second time."""
    assert run("-m", first_document.__name__, str(tmp_path), *OPTIONAL) == ""


def test_first_document_loads_no_optional_library(tmp_path: Path) -> None:
    """Where the optional libraries are installed, ingesting Markdown with an embedder of one's own loads none."""
    assert run("-m", first_document.__name__, str(tmp_path)) == ""
