"""How fast PDF and DOCX are read, beside pypdfium2 and docx2txt on the same files in the same run.

The documents are made for it: prose in one and two columns, a table, headings. One process, its CPU time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import docx2txt
import pypdfium2

from benchmarks.figures import Figure, Scale, processor
from qedge_dagster import ExtractedDocument, SourceItem, media_type_for
from qedge_dagster.extractors import ExtractionContext, Extractor, default_extractors
from tests.extractors.docx import builder as docx
from tests.extractors.pdf import builder as pdf
from tests.extractors.pdf.long_document import write as write_long_pdf

_SENTENCE = (
    "The harbour master keeps the list of berths and boats; whoever wants another one asks before the first of May."
)


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
COMPARED: dict[str, tuple[str, Callable[[ExtractedDocument], int], Callable[[Path], None]]] = {
    "pdf": ("page", _pages, _pypdfium2),
    "docx": ("word", _words, _docx2txt),
}


def measure(scale: Scale) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        write_documents(Path(folder), pages=100)
        extractors = {extractor.id: extractor for extractor in default_extractors()}
        for name in COMPARED:
            yield compare(extractors[name], Path(folder), scale.rounds)


def compare(extractor: Extractor, folder: Path, rounds: int) -> Figure:
    """Milliseconds for a page or a word of the files in `folder`."""
    unit, count, other = COMPARED[extractor.id]
    paths = sorted(path for path in folder.iterdir() if path.suffix in extractor.extensions)
    units = sum(count(_extract(extractor, path)) for path in paths)
    ours, theirs = (
        1000 * seconds / units
        for seconds in processor(
            [lambda: [_extract(extractor, path) for path in paths], lambda: [other(path) for path in paths]], rounds
        )
    )
    name = f"Extraction: {extractor.id}, {units} {unit}s in {len(paths)} files"
    return Figure(name, ours, f"ms/{unit}", theirs, other.__name__.strip("_"))


def _extract(extractor: Extractor, path: Path) -> ExtractedDocument:
    item = SourceItem(path.name, media_type_for(path.suffix), partial(path.open, "rb"))
    return extractor.extract(item, ExtractionContext())


def write_documents(folder: Path, pages: int) -> None:
    """Both formats, each in six files, of which two have about so many pages."""
    write_long_pdf(folder / "lines.pdf", pages)
    prose = " T* ".join(f"({_SENTENCE}) Tj" for _ in range(45))
    columns = " ".join(f"1 0 0 1 {x} 740 Tm {' T* '.join(['(a line of a column of text) Tj'] * 50)}" for x in (60, 320))
    contents = [f"BT /F1 11 Tf 14 TL 60 740 Td {prose} ET", f"BT /F1 10 Tf 13 TL {columns} ET"]
    (folder / "prose and columns.pdf").write_bytes(pdf.build(pdf.pages(contents * (pages // 2))))
    for name in ("outline", "table", "text", "two_columns"):
        (folder / f"{name}.pdf").write_bytes(pdf.fixture(name))
    paragraph = f"<w:p><w:r><w:t>{_SENTENCE}</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t> {_SENTENCE}</w:t></w:r></w:p>"
    row = f"<w:tr>{'<w:tc><w:p><w:r><w:t>a cell</w:t></w:r></w:p></w:tc>' * 4}</w:tr>"
    (folder / "prose.docx").write_bytes(docx.build(paragraph * (20 * pages)))
    (folder / "tables.docx").write_bytes(docx.build(f"<w:tbl>{row * 20}</w:tbl>{paragraph}" * pages))
    for name in ("notes", "runs", "tables", "tracked"):
        (folder / f"fixture {name}.docx").write_bytes(docx.build(docx.read_fixture(name)[0]))
