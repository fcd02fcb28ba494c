"""Documents of many pages, and pages of many pieces."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.extractors.pdf.builder import build, extract, pages
from tests.extractors.pdf.long_document import write


@pytest.mark.long
def test_memory_does_not_grow_with_the_pages(tmp_path: Path) -> None:
    """From 200 to 2,000 pages, memory grows by the text alone, which is held twice when it is joined."""
    peaks: dict[int, tuple[int, int]] = {}
    for count in (200, 2000):
        folder = tmp_path / str(count)
        folder.mkdir()
        write(folder / "a.pdf", count)
        command = [sys.executable, "-m", "tests.extractors.pdf.long_document", str(folder)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        page_count, characters, before, peak = map(int, output.split())
        print(f"{page_count} pages, {characters} characters: {before} KiB before, {peak} KiB at most")
        assert page_count == count
        peaks[count] = characters, peak
    (few, low), (many, high) = peaks.values()
    assert high - low < 2.2 * (many - few) / 1024 + 5 * 1024


@pytest.mark.parametrize("order", ["content", "layout"])
def test_scattered_runs(order: str) -> None:
    """Three thousand runs all over a page lose no word in either order."""
    chance = random.Random(1)
    runs = (
        f"1 0 0 1 {chance.randint(0, 560)} {chance.randint(0, 780)} Tm (run w{number}w here) Tj"
        for number in range(3000)
    )
    document = extract(build(pages([f"BT /F1 6 Tf {' '.join(runs)} ET"])), reading_order=order)
    assert sum(f"w{number}w" in document.text for number in range(3000)) > 2900


def test_staircase() -> None:
    """Lines that each begin a little further right than the one above are read from the top."""
    lines = " ".join(f"1 0 0 1 {number} {700 - 10 * number} Tm (a line, the {number}th) Tj" for number in range(60))
    text = extract(build(pages([f"BT /F1 8 Tf {lines} ET"])), reading_order="layout").text
    assert text.split("\n") == [f"a line, the {number}th" for number in range(60)]
