"""A PDF file → its text, with pages and, where it has an outline, headings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from qedge_dagster.documents import DocumentBlock, ExtractedDocument, normalize_text
from qedge_dagster.errors import Failure, QedgeError
from qedge_dagster.extractors.base import ExtractionContext
from qedge_dagster.extractors.pdf.tolerance import tolerated
from qedge_dagster.extractors.seekable import seekable
from qedge_dagster.sources.base import SourceItem

if TYPE_CHECKING:
    from qedge_dagster.extractors.pdf.glyphs import PageContent
    from qedge_dagster.extractors.pdf.headings import Piece
    from qedge_dagster.extractors.pdf.opening import PdfFile
    from qedge_dagster.extractors.pdf.outline import OutlineEntry

__all__ = ["PdfExtractor", "ReadingOrder"]

ReadingOrder: TypeAlias = Literal["content", "layout"]

_LISTED_PAGES = 10


@dataclass(frozen=True, slots=True)
class PdfExtractor:
    """Text of the pages in the order of the file (`content`), or column by column (`layout`), in any direction.

    `passwords` are tried in turn on encrypted files; they are neither part of the recipe nor shown. `join_hyphens`
    makes words whole that are broken at the end of a line. `page_budget` is the time in seconds that one page may take;
    it is looked at when the page is done, and ends the reading if more pages follow.
    """

    reading_order: ReadingOrder = "content"
    passwords: Sequence[str] = field(default=(), repr=False)
    join_hyphens: bool = True
    page_budget: float = 20.0
    clock: Callable[[], float] = field(default=time.monotonic, repr=False, compare=False)

    id = "pdf"
    version = 1
    extensions = frozenset({".pdf"})
    media_types = frozenset({"application/pdf"})

    @property
    def variant(self) -> str:
        named = ("layout" if self.reading_order == "layout" else "", "" if self.join_hyphens else "keep-hyphens")
        return "+".join(filter(None, named))

    def isolated(self) -> dict[str, Any]:
        return {
            "reading_order": self.reading_order,
            "passwords": list(self.passwords),
            "join_hyphens": self.join_hyphens,
            "page_budget": self.page_budget,
        }

    def can_extract(self, item: SourceItem) -> bool:  # noqa: ARG002 - the contract's last word: any item will do
        return True

    def extract(self, item: SourceItem, context: ExtractionContext) -> ExtractedDocument:
        """Where a page takes longer than its budget, the document is `incomplete` with 6107. Raises `QedgeError` 6103
        for encrypted files that no password opens, 6104 for damaged ones and other content.

        A page has a text layer if most of its letters are known, or if it has notes or form fields with a value.
        `metadata` has `pages_with_text` and `page_coverage`, their share, and what the file says of itself (`title`,
        `author`, …).
        """
        from qedge_dagster.extractors.pdf.opening import open_pdf

        with item.open() as opened, seekable(opened) as stream:
            document = open_pdf(stream, self.passwords)
            text = self._read(document, context)
            if not text.of_pages:
                stream.seek(0)
                document = open_pdf(stream, self.passwords, rebuild=True)
                text = self._read(document, context)
            if not text.of_pages:
                raise QedgeError(6104, "no page can be made out: the file is damaged, was cut off, or has none")
            whole = text.incomplete is None
            if whole and (text.broken or document.rebuilt) and not text.with_text and not text.images:
                raise QedgeError(6104, "no text can be made out: the file is damaged or was cut off")
            information = _information(document)
        return ExtractedDocument(
            item.document_id,
            self.id,
            self.version,
            item.media_type,
            "".join(text.parts),
            tuple(text.blocks),
            {
                **information,
                "pages_with_text": text.with_text,
                "page_coverage": round(text.with_text / text.of_pages, 4),
            },
            text.of_pages,
            text.with_text > 0,
            text.warnings(),
            text.incomplete,
        )

    def _read(self, document: PdfFile, context: ExtractionContext) -> _Text:
        from qedge_dagster.extractors.pdf.glyphs import PageReader
        from qedge_dagster.extractors.pdf.headings import Piece, pieces_of
        from qedge_dagster.extractors.pdf.ordering import by_layout
        from qedge_dagster.extractors.pdf.outline import read_outline
        from qedge_dagster.extractors.pdf.pages import iterate_pages
        from qedge_dagster.extractors.pdf.paragraphs import lines_of
        from qedge_dagster.extractors.pdf.patience import OutOfTimeError, Patience

        outline = read_outline(document)
        patience = Patience(self.clock, self.page_budget)
        reader = PageReader(patience)
        text = _Text(context.normalize_text)
        waiting: list[OutlineEntry] = []
        pages = iterate_pages(document)
        patience.begin()
        for number, page in enumerate(pages, 1):
            try:
                content = reader.read(page)
            except OutOfTimeError:
                why = f"page {number} of {{}} takes longer than {self.page_budget:g} s: it and"
                text.give_up(why, 1 + sum(1 for _ in pages))
                break
            entries = outline.of_page(number, page.pageid)
            document.forget()
            if text.add_page(content):
                fragments = content.fragments if self.reading_order == "content" else by_layout(content.fragments)
                lines = lines_of(fragments) if content.has_text else []
                for piece in pieces_of(lines, [*waiting, *entries], self.join_hyphens):
                    text.add(piece, number)
                for note in content.notes:
                    text.add(Piece("paragraph", note), number)
                waiting = []
            else:
                # The headings of pages without text are those of the next page that has some.
                for entry in entries:
                    waiting = [*(other for other in waiting if other.level < entry.level), entry]
            if patience.was_exceeded():
                text.give_up(f"page {number} of {{}} took longer than {self.page_budget:g} s:", sum(1 for _ in pages))
                break
        return text


class _Text:
    """What was read so far."""

    def __init__(self, normalize: bool) -> None:
        self._normalize = normalize
        self._length = 0
        self._lists: dict[str, list[int]] = {}
        self.parts: list[str] = []
        self.blocks: list[DocumentBlock] = []
        self.page_count = self.with_text = self.images = self.broken = self.not_read = 0
        self.incomplete: Failure | None = None

    @property
    def of_pages(self) -> int:
        return self.page_count + self.not_read

    def add_page(self, content: PageContent) -> bool:
        """Count a page; returns whether its text is to be added."""
        self.page_count += 1
        has_text = content.has_text or bool(content.notes)
        self.with_text += has_text
        self.images += content.images
        if content.fault is not None:
            self.broken += 1
            self._note("read in part, as they are damaged")
        if not content.has_text and content.unreadable:
            self._note("left out, as their fonts do not say which letters they show")
        elif not content.has_text and content.images:
            self._note("pictures without text: OCR would make them searchable")
        elif content.unreadable:
            self._note("with letters that their fonts do not tell (U+FFFD)")
        return has_text

    def add(self, piece: Piece, page: int) -> None:
        text = normalize_text(piece.text) if self._normalize else piece.text
        if self.parts:
            self.parts.append("\n\n")
            self._length += 2
        self.parts.append(text)
        self.blocks.append(DocumentBlock(piece.kind, self._length, self._length + len(text), piece.level, page))
        self._length += len(text)

    def give_up(self, why: str, not_read: int) -> None:
        """There is nothing to give up where the last page was slow."""
        self.not_read = not_read
        if not_read:
            failure = QedgeError(6107, f"{why.format(self.of_pages)} those after it were not read")
            self.incomplete = failure.failure()

    def warnings(self) -> tuple[str, ...]:
        return tuple(f"{_listed(pages)} of {self.of_pages}: {what}" for what, pages in self._lists.items())

    def _note(self, what: str) -> None:
        self._lists.setdefault(what, []).append(self.page_count)


def _listed(pages: Sequence[int]) -> str:
    shown = ", ".join(map(str, pages[:_LISTED_PAGES]))
    more = f" and {len(pages) - _LISTED_PAGES} more" if len(pages) > _LISTED_PAGES else ""
    return f"page{'s' if len(pages) > 1 else ''} {shown}{more}"


def _information(document: PdfFile) -> dict[str, Any]:
    from qedge_dagster.extractors.pdf.strings import read_information

    with tolerated():
        return dict(read_information(document.info))
    return {}
