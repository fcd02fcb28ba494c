"""docs/fsspec.md and docs/llamaindex.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from qedge_dagster.orchestration.settings import SourceSettings

DOCS = Path(__file__).parent.parent.parent / "docs"
FILES = {
    "docs/boats/ferry.md": "# Boats\n\nThe ferry leaves at six from the iron ring.\n",
    "docs/notes.txt": "The clubhouse opens at nine.\n",
}


def snippets(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("fsspec.md", [["1", "0", "['boats.md']"]]),
        (
            "llamaindex.md",
            [["2 0", "2 2", "The clubhouse opens at nine."], ["boats/ferry.md Boats 9", "notes.txt None 0"]],
        ),
    ],
)
def test_every_snippet_runs(
    page: str,
    shown: list[list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The page's snippets print what the text says."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    printed: list[list[str]] = []
    for number, snippet in enumerate(snippets(page, "python")):
        exec(compile(snippet, f"docs/{page}, snippet {number}", "exec"), names)  # noqa: S102 - our own page
        printed.append(capsys.readouterr().out.splitlines())
    assert printed == shown


def test_settings_of_a_store() -> None:
    """The YAML of docs/fsspec.md is that of a source."""
    (block,) = snippets("fsspec.md", "yaml")
    settings = SourceSettings.model_validate(yaml.safe_load(block)["source"])
    assert settings.source(Path("/")).source_id == "s3://bucket/handbook"
