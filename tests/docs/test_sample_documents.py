"""The document of the sample corpus that a script writes."""

from __future__ import annotations

from pathlib import Path

from scripts.sample_documents import RESCUE, pdf

DOCS = Path(__file__).resolve().parents[2] / "examples" / "docs"


def test_the_file_is_that_of_the_script() -> None:
    """Whoever changes the script runs it, and whoever changes the file by hand finds out."""
    assert (DOCS / "wardens" / "rescue.pdf").read_bytes() == pdf(RESCUE)
