"""What extraction ahead is worth: the time of a run over PDF and Markdown files, with it and without.

    python -m benchmarks.ahead [FOLDER] [--rounds 3] [--documents 24] [--json]

FOLDER's PDF files are taken, as many of them as `--documents` says, and between them as many Markdown files of the
repository's own words; without a folder, PDF files are made of those words too. Each round is a run into a new
database with the default model, once with each, in turns. The figures are times by the clock, the shortest of all
rounds: whatever else the machine does only adds to it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from qedge_dagster import FolderSource, IngestionPipeline
from qedge_dagster.embedding import default_embedder
from qedge_dagster.embedding.base import Embedder

_OWN_WORDS = Path(__file__).parents[1] / "docs"
_LINES_PER_PAGE = 45


@dataclass(frozen=True, slots=True)
class Comparison:
    """Seconds of a run; `ratio` is that without extraction ahead to that with it."""

    seconds_ahead: float
    seconds_in_turn: float
    ratio: float
    documents: int
    documents_failed: int
    chunks: int


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="What extraction ahead is worth.")
    parser.add_argument("folder", nargs="?", type=Path, help="folder whose PDF files are taken (default: made ones)")
    parser.add_argument("--documents", type=int, default=24, help="PDF files, and Markdown files (default: 24 of each)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of which the shortest counts (default: 3)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), options.folder, options.documents, options.rounds)
    if options.json:
        print(json.dumps({"rounds": options.rounds, **asdict(found)}, indent=2))
        return
    print(f"{found.documents} documents ({found.documents_failed} failed), {found.chunks} chunks")
    print(f"{found.seconds_in_turn:.2f} s in turn, {found.seconds_ahead:.2f} s ahead: {found.ratio:.2f} times as fast")


def measure(root: Path, pdfs: Path | None, documents: int, rounds: int) -> Comparison:
    """Compare over `documents` PDF files, from `pdfs` or made, and as many Markdown files, written below `root`."""
    folder = root / "documents"
    folder.mkdir()
    _write(folder, sorted(pdfs.rglob("*.pdf"))[:documents] if pdfs is not None else None, documents)
    embedder = default_embedder()
    embedder.load()
    seconds: dict[int, list[float]] = {2: [], 0: []}
    results = [
        _run(root / f"{number}-{ahead}.db", folder, embedder, ahead, seconds[ahead])
        for number in range(rounds)
        for ahead in seconds
    ]
    counts = {(result.documents_seen, result.documents_failed, result.chunks_added) for result in results}
    (count,) = counts  # the same with and without
    ahead, in_turn = min(seconds[2]), min(seconds[0])
    return Comparison(ahead, in_turn, in_turn / ahead, *count)


def _run(database: Path, folder: Path, embedder: Embedder, ahead: int, seconds: list[float]):
    with IngestionPipeline.open(database, embedder=embedder) as pipeline:
        pipeline.stages = replace(pipeline.stages, documents_ahead=ahead)
        start = time.perf_counter()
        result = pipeline.run(FolderSource(folder))
        seconds.append(time.perf_counter() - start)
    return result


def _write(folder: Path, pdfs: Sequence[Path] | None, documents: int) -> None:
    """A PDF file after each Markdown file, by their names. No two Markdown files say the same."""
    texts = [path.read_text("utf-8") for path in sorted(_OWN_WORDS.glob("*.md"))]
    paragraphs = [part for text in texts for part in text.split("\n\n") if len(part) > 200]
    for number in range(documents):
        chosen = paragraphs[number % 7 :: 7][:8]
        (folder / f"{number:04}a.md").write_text(f"# Number {number}\n\n" + f"\n\n{number}: ".join(chosen), "utf-8")
        if pdfs is None:
            lines = [f"{number}, {line}" for part in paragraphs for line in part.splitlines()]
            (folder / f"{number:04}b.pdf").write_bytes(_pdf(lines[number % 5 :: 4]))
    for number, path in enumerate(pdfs or ()):
        (folder / f"{number:04}b.pdf").symlink_to(path.resolve())


def _pdf(lines: Sequence[str]) -> bytes:
    """A file with these lines on its pages."""
    pages = [lines[start : start + _LINES_PER_PAGE] for start in range(0, len(lines), _LINES_PER_PAGE)]
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] /MediaBox [0 0 612 792]"
        " /Resources << /Font << /F1 3 0 R >> >> >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for index, page in enumerate(pages):
        shown = "\n".join(f"({_escaped(line)}) Tj T*" for line in page)
        content = f"BT /F1 9 Tf 15 TL 40 750 Td\n{shown}\nET"
        objects.append(f"<< /Type /Page /Parent 2 0 R /Contents {5 + 2 * index} 0 R >>")
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    data, offsets = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode("ascii")
    start = len(data)
    data += f"xref\n0 {len(offsets) + 1}\n0000000000 65535 f \n".encode("ascii")
    data += b"".join(f"{offset:010} 00000 n \n".encode("ascii") for offset in offsets)
    data += f"trailer\n<< /Root 1 0 R /Size {len(offsets) + 1} >>\nstartxref\n{start}\n%%EOF\n".encode("ascii")
    return bytes(data)


def _escaped(line: str) -> str:
    ascii_only = line.encode("ascii", "ignore").decode()
    return ascii_only.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


if __name__ == "__main__":
    main()
