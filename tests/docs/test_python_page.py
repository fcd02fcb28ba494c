"""docs/python.md runs as it stands."""

from __future__ import annotations

import re
import textwrap
from dataclasses import fields
from pathlib import Path

import pytest

from qedge_dagster import RunResult
from qedge_dagster.extractors import MarkdownExtractor, TextExtractor

PAGE = (Path(__file__).parent.parent.parent / "docs" / "python.md").read_text("utf-8")
FILES = {
    "docs/boats/engine.md": "# Engine\n\nClose the fuel tap after each trip. The engine key hangs in the shed.\n",
    "docs/boats/mooring.md": "# Mooring\n\nThe boat lies at the iron ring.\n",
    "docs/notes.txt": "The clubhouse opens at nine.\n",
    "films/one.srt": "1\n00:00:01,000 --> 00:00:02,000\nThe harbour is closed.\n",
}


def test_every_snippet_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page's snippets, one after the other, do what the text says, over three documents and a subtitle file."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(snippets) == 9
    names: dict[str, object] = {"__name__": "python_page"}
    shown: list[list[str]] = []
    for number, snippet in enumerate(snippets):
        exec(compile(snippet, f"docs/python.md, snippet {number}", "exec"), names)  # noqa: S102 - our own page
        shown.append(capsys.readouterr().out.splitlines())
    assert shown[0] == ["completed 3 3"]
    assert [line.split()[0] for line in shown[1]] == ["boats/engine.md", "boats/mooring.md", "notes.txt"]
    assert shown[2][0].endswith("boats/engine.md Engine")
    assert len(shown[3]) == 1
    assert shown[3] != ["[]"]
    assert shown[4] == ["True () []"]
    assert shown[5] == []
    assert shown[6][0] in {"boats/engine.md", "boats/mooring.md", "notes.txt"}
    assert shown[7] == ["3 (384,)"]
    assert shown[8] == ["1 ['The harbour is closed.']"]


def test_the_dagster_snippet_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands apart, as it needs Dagster, makes definitions with the asset of one's own."""
    import dagster as dg

    monkeypatch.chdir(tmp_path)
    block = PAGE.partition("Under Dagster,")[2].partition("\n\n")[2].partition("\n\nWith ")[0]
    names: dict[str, object] = {}
    source = textwrap.dedent(block).replace("Definitions([", "made = Definitions([")
    exec(compile(source, "docs/python.md", "exec", dont_inherit=True), names)  # noqa: S102 - our own page
    made = names["made"]
    assert isinstance(made, dg.Definitions)
    keys = {key.to_user_string() for key in made.resolve_asset_graph().get_all_asset_keys()}
    assert {"long_chunks", "notes/document_chunks"} <= keys


def test_every_field_of_the_result_is_listed() -> None:
    """The table of `RunResult` has each of its fields, and no other."""
    section = PAGE.partition("## The result")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(field.name for field in fields(RunResult))


def test_every_file_type_is_listed() -> None:
    """The pages that name the supported file types name exactly those of the built-in extractors."""
    root = Path(__file__).parent.parent.parent
    known = MarkdownExtractor().extensions | TextExtractor().extensions
    for text in (PAGE.rpartition("\n\n")[2], (root / "docs" / "cli.md").read_text("utf-8")):
        sentence = re.search(r"`\.md` and .*? as plain text", text, re.DOTALL)
        assert sentence
        assert set(re.findall(r"`(\.\w+)`", sentence[0])) == known
