"""A Word document → its text with headings, lists, tables and notes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from qedge_dagster.documents import DocumentBlock, ExtractedDocument, normalize_text
from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.base import ExtractionContext
from qedge_dagster.extractors.docx.flow import FlowBlock
from qedge_dagster.extractors.docx.graphics import GRAPHICS, GraphicReader
from qedge_dagster.extractors.docx.notes import NotesReader
from qedge_dagster.extractors.docx.opening import PLAIN_MAIN_PART, open_package
from qedge_dagster.extractors.docx.package import Package, Relation
from qedge_dagster.extractors.docx.properties import read_properties
from qedge_dagster.extractors.docx.salvage import plain_paragraphs
from qedge_dagster.extractors.docx.story import Notes, StoryOptions, StoryReader
from qedge_dagster.extractors.docx.styles import Styles, StylesReader
from qedge_dagster.extractors.docx.xml import PartReader, UnexpectedRoot, parse, word
from qedge_dagster.extractors.seekable import seekable
from qedge_dagster.sources.base import SourceItem

__all__ = ["DocxExtractor"]

#: Of one kind: more than any real document has.
_MAX_PARTS = 500

_OTHER_ROOTS = {"workbook": "an Excel workbook", "presentation": "a PowerPoint presentation"}


@dataclass(frozen=True, slots=True)
class DocxExtractor:
    """`notes` are foot- and endnotes, each after the paragraph that calls it, as text boxes are. `headers_footers` puts
    those of the pages at the end, each text once. `hidden_text` is text formatted as hidden."""

    notes: bool = True
    text_boxes: bool = True
    headers_footers: bool = False
    hidden_text: bool = False

    id = "docx"
    version = 1
    extensions = frozenset({".docx", ".docm", ".dotx", ".dotm"})
    media_types = frozenset(
        {
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
            "application/vnd.ms-word.document.macroenabled.12",
            "application/vnd.ms-word.template.macroenabled.12",
        }
    )

    @property
    def variant(self) -> str:
        named = (
            "" if self.notes else "no-notes",
            "" if self.text_boxes else "no-text-boxes",
            "headers-footers" if self.headers_footers else "",
            "hidden-text" if self.hidden_text else "",
        )
        return "+".join(filter(None, named))

    def isolated(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def can_extract(self, item: SourceItem) -> bool:  # noqa: ARG002 - the contract's last word: any item will do
        return True

    def extract(self, item: SourceItem, context: ExtractionContext) -> ExtractedDocument:
        """Raises `QedgeError` 6103 for documents with a password, 6104 for damaged ones and other content.

        `metadata` is what the file says of itself: `title`, `author`, `subject`, `keywords`.
        """
        with item.open() as opened, seekable(opened) as stream:
            package = open_package(stream)
            warnings: list[str] = []
            blocks, pictures = self._blocks(package, warnings)
            text = _Text(context.normalize_text)
            for block in blocks:
                text.add(block)
            return ExtractedDocument(
                item.document_id,
                self.id,
                self.version,
                item.media_type,
                "".join(text.parts),
                tuple(text.blocks),
                read_properties(package),
                has_text_layer=bool(text.blocks) or not pictures,
                warnings=tuple(warnings),
            )

    def _blocks(self, package: Package, warnings: list[str]) -> tuple[list[FlowBlock], bool]:
        """The text, and whether there are pictures."""
        main = package.main_part()
        if main is None:
            reason = "the archive does not say which part is the document"
        else:
            try:
                return self._walk(package, main, warnings)
            except UnexpectedRoot as error:
                what = _OTHER_ROOTS.get(str(error), "XML of another kind")
                raise QedgeError(6104, f"the content is {what}, not a Word document") from error
            except (QedgeError, OSError, MemoryError):
                raise
            except Exception as error:
                reason = f"{type(error).__name__} in its structure"
        blocks = [FlowBlock("paragraph", paragraph) for paragraph in plain_paragraphs(package, main or PLAIN_MAIN_PART)]
        warnings.append(f"read as plain text, without headings and tables: {reason}")
        return blocks, False

    def _walk(self, package: Package, main: str, warnings: list[str]) -> tuple[list[FlowBlock], bool]:
        relations = _relations(package, main, warnings)
        options = StoryOptions(self.text_boxes, self.hidden_text)
        styles = StylesReader()
        for part in _targets(relations, "styles")[:1]:
            _read_aside(package, part, styles, warnings)
        notes: Notes = {}
        for kind in ("footnote", "endnote") if self.notes else ():
            for part in _targets(relations, kind + "s")[:1]:
                reader = NotesReader(styles.styles, options, kind)
                _read_aside(package, part, reader, warnings)
                notes.update(reader.found)
        if self.text_boxes:
            notes.update(_graphics(package, relations, warnings))
        body = StoryReader(styles.styles, options, notes)
        with package.open(main) as stream:
            parse(stream, body, main, word("document"))
        if body.missed:
            warnings.append(f"not read: {', '.join(sorted(body.missed))}")
        headers_footers = self._headers_footers(package, relations, styles.styles, options, warnings)
        return [*body.blocks, *headers_footers], body.pictures

    def _headers_footers(
        self,
        package: Package,
        relations: list[Relation],
        styles: Styles,
        options: StoryOptions,
        warnings: list[str],
    ) -> list[FlowBlock]:
        texts: dict[str, None] = {}
        for kind in ("header", "footer") if self.headers_footers else ():
            for part in _targets(relations, kind)[:_MAX_PARTS]:
                reader = StoryReader(styles, options)
                _read_aside(package, part, reader, warnings)
                texts.update(dict.fromkeys(block.text for block in reader.blocks))
        return [FlowBlock("footer", text) for text in texts]


def _targets(relations: list[Relation], kind: str) -> list[str]:
    return list(dict.fromkeys(relation.target for relation in relations if relation.kind == kind))


def _relations(package: Package, main: str, warnings: list[str]) -> list[Relation]:
    try:
        return package.relations(main)
    except QedgeError as error:
        if error.code != 6104:
            raise
        warnings.append(f"read without styles, notes and what else is in parts of its own: {error.message}")
        return []


def _graphics(package: Package, relations: list[Relation], warnings: list[str]) -> Notes:
    read: dict[str, list[FlowBlock]] = {}
    for part in [part for kind in GRAPHICS for part in _targets(relations, kind)][:_MAX_PARTS]:
        reader = GraphicReader()
        _read_aside(package, part, reader, warnings)
        read[part] = reader.blocks
    return {("graphic", relation.id): read[relation.target] for relation in relations if relation.target in read}


def _read_aside(package: Package, part: str, reader: PartReader, warnings: list[str]) -> None:
    """A part without which there is a document still; what came of it until it broke is used."""
    try:
        with package.open(part) as stream:
            parse(stream, reader, part)
    except QedgeError as error:
        if error.code != 6104:
            raise
        warnings.append(error.message)


class _Text:
    def __init__(self, normalize: bool) -> None:
        self._normalize = normalize
        self._length = 0
        self._last: FlowBlock | None = None
        self.parts: list[str] = []
        self.blocks: list[DocumentBlock] = []

    def add(self, block: FlowBlock) -> None:
        text = normalize_text(block.text) if self._normalize else block.text
        between = self._between(block)
        start = self._length + len(between)
        self.parts += (between, text)
        self._length = start + len(text)
        self.blocks.append(DocumentBlock(block.kind, start, self._length, block.level))
        self._last = block

    def _between(self, block: FlowBlock) -> str:
        if self._last is None:
            return ""
        together = block.continued or block.kind == "list_item"
        return "\n" if together and self._last.kind == block.kind else "\n\n"
