"""The written documentation says what the code says."""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import pytest

from qedge_dagster.chunking.base import ChunkingOptions
from qedge_dagster.errors import CATALOGUE
from qedge_dagster.pipeline.options import IngestionBudget, IngestionOptions, RunOptions

ROOT = Path(__file__).parent.parent.parent
ERRORS = (ROOT / "docs" / "errors.md").read_text("utf-8")
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text("utf-8")


def test_every_error_is_documented() -> None:
    """docs/errors.md has a section for every code of the catalogue, under its name, and no other."""
    documented = re.findall(r"^## (\d+) (\w+)$", ERRORS, re.MULTILINE)
    assert documented == [(str(code), entry.name) for code, entry in CATALOGUE.items()]


@pytest.mark.parametrize("code", CATALOGUE)
def test_every_error_has_cause_and_remedy(code: int) -> None:
    """Each section says why it happens and what to do."""
    section = re.search(rf"^## {code} .*?$(.*?)(?=^#|\Z)", ERRORS, re.MULTILINE | re.DOTALL)
    assert section
    assert re.search(r"\*\*Cause\.\*\* \S.{20,}\*\*What to do\.\*\* \S.{10,}", section[1], re.DOTALL)


OPTIONS = (ChunkingOptions, IngestionOptions, RunOptions, IngestionBudget)


def _default(field: Field[Any]) -> str:
    if field.default_factory is not MISSING:
        return f"{field.default_factory.__name__}()"  # type: ignore[attr-defined]
    if field.default is IngestionBudget.UNLIMITED:
        return "IngestionBudget.UNLIMITED"
    return repr(field.default)


@pytest.mark.parametrize("kind", OPTIONS, ids=lambda kind: kind.__name__)
def test_every_option_is_documented(kind: type) -> None:
    """docs/configuration.md has a row for every option, with its default and an effect, and no other."""
    section = re.search(rf"^## {kind.__name__}$(.*?)(?=^## |\Z)", CONFIGURATION, re.MULTILINE | re.DOTALL)
    assert section
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \| .+? \| (.{10,}?) \|", section[1], re.MULTILINE)
    assert [row[:2] for row in rows] == [(field.name, _default(field)) for field in fields(kind)]


@pytest.mark.parametrize("document", sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")]), ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    """Every relative link of the documentation names a file that exists."""
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text("utf-8"))
    for target in targets:
        assert (document.parent / target).exists(), target


def test_python_example_of_the_readme_is_valid() -> None:
    """The Python code in the README compiles, and imports only names that exist."""
    import qedge_dagster

    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        compile(block, "README.md", "exec")
        for names in re.findall(r"^from qedge_dagster import (.+)$", block, re.MULTILINE):
            for name in names.split(", "):
                assert hasattr(qedge_dagster, name), name
