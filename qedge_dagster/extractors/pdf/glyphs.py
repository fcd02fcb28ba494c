"""What is on a page: fragments of text in the order in which they are drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import atan2, cos, degrees, hypot, radians, sin

from pdfminer.pdfcolor import PDFColorSpace
from pdfminer.pdfdevice import PDFTextDevice, PDFTextSeq
from pdfminer.pdffont import PDFFont, PDFUnicodeNotDefined
from pdfminer.pdfinterp import PDFGraphicState, PDFResourceManager, PDFTextState
from pdfminer.pdfpage import PDFPage
from pdfminer.pdftypes import PDFStream
from pdfminer.psparser import PSLiteral
from pdfminer.utils import Matrix, mult_matrix

from qedge_dagster.extractors.pdf.annotations import Annotations
from qedge_dagster.extractors.pdf.content import ContentInterpreter
from qedge_dagster.extractors.pdf.fonts import Fonts
from qedge_dagster.extractors.pdf.fragments import Fragment, Glyph, clean, fragment_of
from qedge_dagster.extractors.pdf.patience import Patience
from qedge_dagster.extractors.pdf.repeats import DrawnGlyphs
from qedge_dagster.extractors.pdf.strings import decode_text
from qedge_dagster.extractors.pdf.tolerance import OUTRIGHT

__all__ = ["PageContent", "PageReader"]

#: In units of the font size: what is further apart is another column, cell or word list, or another line.
_MAX_GAP = 1.2
_MAX_RISE = 0.5
#: Of marked content within marked content.
_MAX_TAGS = 1000


@dataclass(slots=True)
class PageContent:
    """`notes` are texts laid over the page, those of form fields among them. `fault` names the error that ended the
    reading of the page early."""

    fragments: list[Fragment] = field(default_factory=list[Fragment])
    notes: list[str] = field(default_factory=list[str])
    readable: int = 0
    unreadable: int = 0
    images: int = 0
    fault: str | None = None

    @property
    def has_text(self) -> bool:
        """Whether most of the letters are known."""
        return self.readable > self.unreadable


class PageReader:
    """Reads pages; keeps the fonts of the last ones."""

    def __init__(self, patience: Patience) -> None:
        fonts = Fonts()
        self._annotations = Annotations()
        self._device = _Device(fonts)
        self._interpreter = ContentInterpreter(fonts, self._device, patience)

    def read(self, page: PDFPage) -> PageContent:
        content = self._device.begin()
        self._interpreter.cut = False
        try:
            self._interpreter.process_page(page)
        except OUTRIGHT:
            raise
        except Exception as error:
            content.fault = type(error).__name__
        if self._interpreter.cut:
            content.fault = content.fault or "PSEOF"
        self._device.finish()
        content.notes = self._annotations.read(page)
        return content


@dataclass(slots=True)
class _Replacement:
    """Text that stands in place of glyphs, and the first of them once it is drawn."""

    text: str
    first: Glyph | None = None


class _Device(PDFTextDevice):
    """The library's own analysis keeps every line and curve of a page, and groups boxes in quadratic time."""

    def __init__(self, fonts: PDFResourceManager) -> None:
        super().__init__(fonts)
        self.content = PageContent()
        self._drawn = DrawnGlyphs()
        self._run: list[Glyph] = []
        self._spacing = 0.0
        # Of the marked content that was begun and not ended: what its glyphs stand for, if they do.
        self._tags: list[_Replacement | None] = []
        # Of the font in use: the library looks them up in two ways each time.
        self._font: PDFFont | None = None
        self._characters: dict[int, tuple[str | None, float]] = {}

    def begin(self) -> PageContent:
        """Begin a page; returns what is filled while it is read."""
        self.content, self._drawn, self._tags = PageContent(), DrawnGlyphs(), []
        return self.content

    def render_image(self, name: str, stream: PDFStream) -> None:  # noqa: ARG002 - the library's signature
        self.content.images += 1

    def begin_tag(self, tag: PSLiteral, props: object = None) -> None:  # noqa: ARG002 - the library's signature
        outer = self._tags[-1] if self._tags else None
        text = None
        if outer is None and isinstance(props, dict) and "ActualText" in props:
            text = decode_text(props["ActualText"])
        if len(self._tags) < _MAX_TAGS:
            self._tags.append(outer if text is None else _Replacement(text))

    def end_tag(self) -> None:
        if self._tags:
            self._tags.pop()

    def render_string(
        self, textstate: PDFTextState, seq: PDFTextSeq, ncs: PDFColorSpace, graphicstate: PDFGraphicState
    ) -> None:
        """The character spacing is told to the glyphs, but for the last: the library's place after it lacks it."""
        if textstate.charspace > 0 and self.ctm is not None:
            a, b, *_ = mult_matrix(textstate.matrix, self.ctm)
            self._spacing = textstate.charspace * abs(textstate.scaling) * 0.01 * hypot(a, b)
        super().render_string(textstate, seq, ncs, graphicstate)
        if self._spacing:
            self._spacing = 0.0
            if self._run:
                self._run[-1].spacing = 0.0

    def render_char(
        self,
        matrix: Matrix,
        font: PDFFont,
        fontsize: float,
        scaling: float,
        rise: float,
        cid: int,
        ncs: PDFColorSpace,  # noqa: ARG002
        graphicstate: PDFGraphicState,  # noqa: ARG002
    ) -> float:
        """Returns the advance, in the units of the text's own space."""
        if font is not self._font:
            self._font, self._characters = font, {}
        if cid not in self._characters:
            self._characters[cid] = _character(font, cid)
        text, width = self._characters[cid]
        advance = width * fontsize * scaling
        self._add(_glyph(text, matrix, fontsize, scaling, rise, advance, font.is_vertical()))
        return advance

    def finish(self) -> None:
        """Take the last fragment."""
        fragment = fragment_of(self._run) if self._run else None
        if fragment is not None:
            self.content.fragments.append(fragment)
        self._run = []

    def _add(self, glyph: Glyph) -> None:
        if self._drawn.repeats(glyph):
            return
        glyph.spacing = self._spacing
        replacement = self._tags[-1] if self._tags else None
        if replacement is not None and not self._replaced(glyph, replacement):
            return
        if glyph.text is None:
            self.content.unreadable += 1
        elif glyph.text and not glyph.text.isspace():
            glyph.text, known = _cleaned(glyph.text)
            self.content.readable += known
            self.content.unreadable += not known
        if self._run and not _follows(self._run[-1], glyph):
            self.finish()
        self._run.append(glyph)

    def _replaced(self, glyph: Glyph, replacement: _Replacement) -> bool:
        """Give the text to the first of the glyphs that it replaces, and to that one the place of those that follow.
        Returns whether this is the first."""
        first = replacement.first
        if first is None:
            glyph.text = replacement.text
            replacement.first = glyph
            return True
        if self._run and self._run[-1] is first and _follows(first, glyph):
            first.start, first.end = min(first.start, glyph.start), max(first.end, glyph.end)
            first.spacing = glyph.spacing
        return False


def _character(font: PDFFont, cid: int) -> tuple[str | None, float]:
    """What it says, and its width in units of the font size."""
    width = font.char_width(cid)
    try:
        return font.to_unichr(cid), width
    except PDFUnicodeNotDefined:
        return None, width


def _follows(last: Glyph, glyph: Glyph) -> bool:
    size = last.size if last.size > glyph.size else glyph.size  # `max` takes longer than all the rest
    gap = _MAX_GAP * size
    return (
        last.angle == glyph.angle
        and abs(last.base - glyph.base) <= _MAX_RISE * size
        and glyph.start - last.end - last.spacing <= gap
        and last.start - glyph.end - glyph.spacing <= gap
    )


@lru_cache(maxsize=4096)
def _cleaned(text: str) -> tuple[str, bool]:
    """And whether it is known."""
    text = clean(text)
    return text, not text.isspace() and "\ufffd" not in text


def _glyph(
    text: str | None, matrix: Matrix, fontsize: float, scaling: float, rise: float, advance: float, vertical: bool
) -> Glyph:
    a, b, c, d, x, y = matrix
    x, y = x + c * rise, y + d * rise
    size = abs(fontsize) * hypot(c, d)
    if vertical:
        a, b, length = -c, -d, abs(advance) * hypot(c, d)
    else:
        length = abs(advance) * hypot(a, b)
        if fontsize * scaling < 0:
            a, b = -a, -b
    if b == 0 and a > 0:
        return Glyph(text, x, x + length, y, size, 0)
    angle = round(degrees(atan2(b, a))) % 360
    along, across = cos(radians(angle)), sin(radians(angle))
    start = x * along + y * across
    return Glyph(text, start, start + length, y * along - x * across, size, angle)
