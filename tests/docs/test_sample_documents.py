"""The documents of the sample corpus that a script writes."""

from __future__ import annotations

from pathlib import Path

from scripts.sample_documents import MINUTES, RESCUE, docx, pdf

DOCS = Path(__file__).resolve().parents[2] / "examples" / "docs"


def test_the_files_are_those_of_the_script() -> None:
    """Whoever changes the script runs it, and whoever changes the file by hand finds out."""
    assert (DOCS / "wardens" / "rescue.pdf").read_bytes() == pdf(RESCUE)
    assert (DOCS / "club" / "minutes.docx").read_bytes() == docx(MINUTES)
