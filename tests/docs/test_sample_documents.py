"""The documents of the sample corpus that a script writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.sample_documents import _MINUTES, _RESCUE, _TASKS, docx, pdf

DOCS = Path(__file__).resolve().parents[2] / "examples" / "docs"


@pytest.mark.parametrize(
    ("name", "written"), [("wardens/rescue.pdf", pdf(_RESCUE)), ("club/minutes.docx", docx(_MINUTES, _TASKS))]
)
def test_the_files_are_those_of_the_script(name: str, written: bytes) -> None:
    """Whoever changes the script runs it, and whoever changes a file by hand finds out."""
    assert (DOCS / name).read_bytes() == written
