"""What extraction ahead is worth: the time of a run over PDF and Markdown files, with it and without.

Both kinds are made of the repository's own words, and take turns in the run, which is into a new database and with the
default model. The figures are by the clock on the wall.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from benchmarks.figures import Figure, Scale, wall
from qedge_dagster import FolderSource, IngestionPipeline
from qedge_dagster.embedding import default_embedder

_OWN_WORDS = Path(__file__).parents[1] / "docs"
_LINES_PER_PAGE = 45


def measure(scale: Scale) -> Iterator[Figure]:
    documents = 24 if scale.full else 2
    with tempfile.TemporaryDirectory() as folder:
        yield compare(Path(folder), documents, scale.rounds)


def compare(root: Path, documents: int, rounds: int) -> Figure:
    """Over so many PDF files and as many Markdown files, written below `root`."""
    folder = root / "documents"
    folder.mkdir()
    _write(folder, documents)
    embedder = default_embedder()
    embedder.load()
    numbers = count()

    def run(ahead: int) -> Callable[[], object]:
        def once() -> None:
            with IngestionPipeline.open(root / f"{next(numbers)}.db", embedder=embedder) as pipeline:
                pipeline.stages = replace(pipeline.stages, documents_ahead=ahead)
                result = pipeline.run(FolderSource(folder))
            assert result.documents_indexed == 2 * documents

        return once

    ahead, in_turn = wall([run(2), run(0)], rounds)
    name = f"Extraction ahead: {documents} PDF and {documents} Markdown files"
    return Figure(name, ahead, "s", in_turn, "the same, in turn")


def _write(folder: Path, documents: int) -> None:
    """A PDF file after each Markdown file, by their names. No two Markdown files say the same."""
    texts = [path.read_text("utf-8") for path in sorted(_OWN_WORDS.glob("*.md"))]
    paragraphs = [part for text in texts for part in text.split("\n\n") if len(part) > 200]
    for number in range(documents):
        chosen = paragraphs[number % 7 :: 7][:8]
        (folder / f"{number:04}a.md").write_text(f"# Number {number}\n\n" + f"\n\n{number}: ".join(chosen), "utf-8")
        lines = [f"{number}, {line}" for part in paragraphs for line in part.splitlines()]
        (folder / f"{number:04}b.pdf").write_bytes(_pdf(lines[number % 5 :: 12]))


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
