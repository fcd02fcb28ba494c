"""A set of ingestion assets as plain data."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
import yaml
from pydantic import ValidationError

from qedge_dagster.chunking.base import ChunkingOptions
from qedge_dagster.extractors import DocxExtractor, PdfExtractor, default_extractors
from qedge_dagster.orchestration import IngestionSettings
from qedge_dagster.pipeline import IngestionBudget
from tests.pipeline.support import write

YAML = """
source:
  folder: docs
  pattern: ["*.md", "*.txt"]
  exclude: drafts
  id: handbook
database: handbook.db
collection: handbook
chunking: {max_tokens: 100, split_levels: [1, 2]}
pdf: {reading_order: layout, page_budget: 5}
docx: {notes: false, headers_footers: true}
budget: {max_duration: 300}
schedule: 0 4 * * *
"""


def test_settings_from_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part reaches the object it is for; relative paths are below the given root."""
    settings = IngestionSettings.resolve_from_yaml(YAML)
    write(tmp_path / "docs", {"a.md": "alpha", "b.log": "beta", "drafts/c.md": "gamma"})
    target, resource = settings.target(tmp_path), settings.resource(tmp_path)
    assert [getattr(item, "document_id", None) for item in target.source.items()] == ["a.md"]
    assert (target.collection, target.source.source_id) == ("handbook", "handbook")
    assert resource.database == str(tmp_path / "handbook.db")
    assert resource.budget.budget() == IngestionBudget(max_duration=300)
    assert resource.options().chunking == ChunkingOptions(max_tokens=100, split_levels=(1, 2))
    monkeypatch.setenv("QEDGE_PDF_PASSWORDS", "open sesame\nswordfish")
    by_format = {extractor.id: extractor for extractor in resource.extractors()}
    assert by_format["pdf"] == PdfExtractor("layout", ("open sesame", "swordfish"), page_budget=5)
    assert by_format["docx"] == DocxExtractor(notes=False, headers_footers=True)
    repository = settings.definitions(tmp_path).get_repository_def()
    assert [schedule.cron_schedule for schedule in repository.schedule_defs] == ["0 4 * * *"]


def test_formats_have_the_defaults_of_their_extractors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings that say nothing of a format read it as the engine alone does."""
    monkeypatch.delenv("QEDGE_PDF_PASSWORDS", raising=False)
    settings = IngestionSettings.resolve_from_yaml("{source: {folder: docs}, database: a.db}")
    assert settings.resource(Path("/")).extractors() == default_extractors()


def test_two_sources_of_one_project(tmp_path: Path) -> None:
    """Two sets with different databases and models live in one code location, each with its own resource."""
    one = IngestionSettings.resolve_from_yaml(YAML)
    two = one.model_copy(update={"collection": "notes", "database": "notes.db"})
    merged = dg.Definitions.merge(one.definitions(tmp_path), two.definitions(tmp_path))
    dg.Definitions.validate_loadable(merged)
    databases = {Path(resource.database).name for resource in (merged.resources or {}).values()}
    assert databases == {"handbook.db", "notes.db"}


def test_files_below_a_root(tmp_path: Path) -> None:
    """Listed files keep the ids they are given by, wherever the process runs."""
    write(tmp_path, {"notes/a.md": "alpha"})
    settings = IngestionSettings.resolve_from_yaml("{source: {files: [notes/a.md]}, database: a.db}")
    (item,) = settings.target(tmp_path).source.items()
    assert getattr(item, "document_id", None) == "notes/a.md"
    assert getattr(item, "size_bytes", None) == 5


@pytest.mark.parametrize("source", ["{}", "{folder: docs, files: [a.md]}"])
def test_a_source_is_a_folder_or_files(source: str) -> None:
    """Neither and both are refused."""
    with pytest.raises(ValidationError, match="either a folder or files"):
        IngestionSettings.model_validate({"source": yaml.safe_load(source), "database": "a.db"})


def test_a_budget_is_positive() -> None:
    """A limit that no run could keep is refused when the settings are read, not by the run."""
    with pytest.raises(ValidationError, match="greater than 0"):
        IngestionSettings.model_validate(
            {"source": {"folder": "docs"}, "database": "a.db", "budget": {"max_duration": -5}}
        )
