"""How fast PDF and DOCX are read, beside pypdfium2 and docx2txt on the same files in the same run.

    python -m benchmarks.extraction [FOLDER ...] [--rounds 5] [--json]

Without a folder it reads documents that are made for it: prose in one and two columns, a table, headings. One process,
its CPU time, medians over the rounds; `ratio` is the time of ours to that of the other. Files that one of the two
cannot read, or that hold no text for ours, are left out of both times and counted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import docx2txt
import pypdfium2

from qedge_dagster import ExtractedDocument, SourceItem, media_type_for
from qedge_dagster.extractors import ExtractionContext, Extractor, default_extractors
from tests.extractors.docx import builder as docx
from tests.extractors.pdf import builder as pdf
from tests.extractors.pdf.long_document import write as write_long_pdf

_SENTENCE = (
    "The harbour master keeps the list of berths and boats; whoever wants another one asks before the first of May."
)


@dataclass(frozen=True, slots=True)
class Speed:
    """Of `units` (pages or words) in `files`; `left_out` files were not compared."""

    unit: str
    files: int
    left_out: int
    units: int
    ours_per_second: float
    other: str
    other_per_second: float
    ratio: float


def _pypdfium2(path: Path) -> None:
    with closing(pypdfium2.PdfDocument(path)) as document:
        for page in document:
            page.get_textpage().get_text_range()


def _docx2txt(path: Path) -> None:
    docx2txt.process(path)


def _pages(document: ExtractedDocument) -> int:
    return document.page_count or 0


def _words(document: ExtractedDocument) -> int:
    return len(document.text.split())


#: By the id of our extractor: what is counted, how, and who else reads such files.
_COMPARED: dict[str, tuple[str, Callable[[ExtractedDocument], int], Callable[[Path], None]]] = {
    "pdf": ("pages", _pages, _pypdfium2),
    "docx": ("words", _words, _docx2txt),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="How fast PDF and DOCX are read.")
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="read these instead of made documents")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of which the median is taken (default: 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        if not options.folders:
            write_documents(Path(made))
        found = measure(options.folders or [Path(made)], options.rounds)
    if options.json:
        rows = {name: asdict(speed) if speed else None for name, speed in found.items()}
        print(json.dumps({"rounds": options.rounds, **rows}, indent=2))
        return
    print(f"{'':6}{'files':>6}{'left out':>10}{'ours':>16}{'other':>16}{'ratio':>8}")
    for name, speed in found.items():
        if speed is None:
            print(f"{name:6}no extractor, or no file that both can read")
            continue
        print(
            f"{name:6}{speed.files:6}{speed.left_out:10}{speed.ours_per_second:8.0f} {speed.unit}/s"
            f"{speed.other_per_second:8.0f} {speed.unit}/s{speed.ratio:8.2f}  {speed.other}"
        )


def measure(folders: Sequence[Path], rounds: int) -> dict[str, Speed | None]:
    """By format; None where there is no extractor for it, or nothing to read."""
    extractors = {extractor.id: extractor for extractor in default_extractors()}
    return {name: _compare(extractors[name], folders, rounds) if name in extractors else None for name in _COMPARED}


def _compare(extractor: Extractor, folders: Sequence[Path], rounds: int) -> Speed | None:
    unit, count, other = _COMPARED[extractor.id]
    found = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in extractor.extensions)
    paths: list[Path] = []
    units = 0
    for path in found:
        try:
            document = _extract(extractor, path)
            other(path)
        except Exception:  # noqa: S112 - of whatever kind: the two are compared over what both read
            continue
        if document.has_text_layer:
            paths.append(path)
            units += count(document)
    if not units:
        return None
    ours, theirs = _medians([partial(_extract, extractor), other], paths, rounds)
    left_out = len(found) - len(paths)
    return Speed(
        unit, len(paths), left_out, units, units / ours, other.__name__.strip("_"), units / theirs, ours / theirs
    )


def _extract(extractor: Extractor, path: Path) -> ExtractedDocument:
    item = SourceItem(path.name, media_type_for(path.suffix), partial(path.open, "rb"))
    return extractor.extract(item, ExtractionContext())


def _medians(readers: Sequence[Callable[[Path], object]], paths: Sequence[Path], rounds: int) -> list[float]:
    """Seconds of CPU that each needs for all files; they take turns."""
    samples: list[list[float]] = [[] for _ in readers]
    for _ in range(rounds):
        for reader, sample in zip(readers, samples, strict=True):
            start = time.process_time()
            for path in paths:
                reader(path)
            sample.append(time.process_time() - start)
    return [statistics.median(sample) for sample in samples]


def write_documents(folder: Path) -> None:
    """Both formats, each some hundred pages in a few files."""
    write_long_pdf(folder / "lines.pdf", 100)
    prose = " T* ".join(f"({_SENTENCE}) Tj" for _ in range(45))
    columns = " ".join(f"1 0 0 1 {x} 740 Tm {' T* '.join(['(a line of a column of text) Tj'] * 50)}" for x in (60, 320))
    contents = [f"BT /F1 11 Tf 14 TL 60 740 Td {prose} ET", f"BT /F1 10 Tf 13 TL {columns} ET"]
    (folder / "prose and columns.pdf").write_bytes(pdf.build(pdf.pages(contents * 50)))
    for name in ("outline", "table", "text", "two_columns"):
        (folder / f"{name}.pdf").write_bytes(pdf.fixture(name))
    paragraph = f"<w:p><w:r><w:t>{_SENTENCE}</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t> {_SENTENCE}</w:t></w:r></w:p>"
    row = f"<w:tr>{'<w:tc><w:p><w:r><w:t>a cell</w:t></w:r></w:p></w:tc>' * 4}</w:tr>"
    (folder / "prose.docx").write_bytes(docx.build(paragraph * 2000))
    (folder / "tables.docx").write_bytes(docx.build(f"<w:tbl>{row * 20}</w:tbl>{paragraph}" * 100))
    for name in ("notes", "runs", "tables", "tracked"):
        (folder / f"fixture {name}.docx").write_bytes(docx.build(docx.read_fixture(name)[0]))


if __name__ == "__main__":
    main()
