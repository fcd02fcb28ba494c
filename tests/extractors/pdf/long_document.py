"""Write a PDF of many pages, each with a font of its own, extract it, and print the peak of memory in KiB before and
after: `python -m tests.extractors.pdf.long_document FOLDER PAGES`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from qedge_dagster.extractors import ExtractionContext, PdfExtractor
from qedge_dagster.sources import FolderSource, SourceItem
from tests.extractors.pdf.builder import build, fixture, pages, pdf_item


def write(path: Path, count: int) -> None:
    """`count` pages of forty lines."""
    lines = " T* ".join(f"(A line of some words, the {number}th of its page) Tj" for number in range(40))
    parts = [pages([f"BT /F1 10 Tf 12 TL 72 720 Td {lines} ET"] * count)]
    for index in range(count):
        page = 10 + 2 * index
        font = 10 + 2 * count + index
        parts.append(f"{font} 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Name /F{index} >>\nendobj")
        # A later object of a number takes the place of an earlier one.
        parts.append(
            f"{page} 0 obj\n<< /Type /Page /Parent 2 0 R /Contents {page + 1} 0 R "
            f"/Resources << /Font << /F1 {font} 0 R >> >> >>\nendobj"
        )
    path.write_bytes(build("\n".join(parts)))


def _peak() -> int:
    """Of this process's memory, in KiB. `getrusage` on Linux counts that of the process it was forked from as well."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1])  # type: ignore[index]
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main(folder: Path) -> None:
    """Extract what is in the folder."""
    # What is loaded and kept once does not count.
    PdfExtractor().extract(pdf_item(fixture("text")), ExtractionContext())
    before = _peak()
    for item in FolderSource(folder).items():
        assert isinstance(item, SourceItem)
        document = PdfExtractor().extract(item, ExtractionContext())
        print(document.page_count, len(document.text), before, _peak())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
