"""What a paragraph or a run has from its style."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from qedge_dagster.extractors.docx.xml import PartReader, attribute, named, word

__all__ = ["BODY_TEXT", "FORMER_PROPERTIES", "ParagraphStyle", "Styles", "StylesReader", "is_on", "outline_level"]

#: The heading level of what is no heading.
BODY_TEXT = 0


class ParagraphStyle(NamedTuple):
    level: int = BODY_TEXT
    listed: bool = False
    hidden: bool = False


@dataclass(slots=True)
class _Style:
    """None where the style says nothing: what it is based on is asked then."""

    based_on: str | None = None
    level: int | None = None
    listed: bool | None = None
    hidden: bool | None = None


class Styles:
    """A style that is absent, or based on itself by some way, says nothing."""

    def __init__(self) -> None:
        self.defined: dict[str, _Style] = {}
        self.default: str | None = None
        self._resolved: dict[str, ParagraphStyle] = {}

    def paragraph(self, style_id: str | None) -> ParagraphStyle:
        """Without an id, that of the default paragraph style."""
        style_id = style_id if style_id is not None else self.default
        if style_id is None:
            return ParagraphStyle()
        if style_id not in self._resolved:
            chain = self._chain(style_id)
            self._resolved[style_id] = ParagraphStyle(
                next((style.level for style in chain if style.level is not None), BODY_TEXT),
                next((style.listed for style in chain if style.listed is not None), False),
                next((style.hidden for style in chain if style.hidden is not None), False),
            )
        return self._resolved[style_id]

    def hides(self, style_id: str) -> bool:
        """Whether a character style hides its text."""
        return self.paragraph(style_id).hidden

    def _chain(self, style_id: str) -> list[_Style]:
        chain: dict[str, _Style] = {}
        following: str | None = style_id
        while following is not None and following not in chain and (style := self.defined.get(following)):
            chain[following] = style
            following = style.based_on
        return list(chain.values())


class StylesReader(PartReader):
    """Reads the part of the styles."""

    def __init__(self) -> None:
        self.styles = Styles()
        self._style: _Style | None = None
        self._skipped = 0
        self._actions = named(
            {
                "style": self._begin,
                "basedOn": self._based_on,
                "outlineLvl": self._outline,
                "numId": self._numbering,
                "vanish": self._vanish,
                # The table parts of a style may say something else again of their own runs.
                **dict.fromkeys(("tblStylePr", *FORMER_PROPERTIES), self._skip),
            }
        )

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipped:
            self._skipped += 1
            return
        if name in self._actions:
            self._actions[name](attributes)

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif name in _STYLE:
            self._style = None

    def _skip(self, _: Mapping[str, str]) -> None:
        self._skipped = 1

    def _begin(self, attributes: Mapping[str, str]) -> None:
        self._style = _Style()
        style_id = attribute(attributes, "styleId")
        if style_id is None:
            return
        self.styles.defined[style_id] = self._style
        if attribute(attributes, "type") == "paragraph" and is_on(attribute(attributes, "default") or "0"):
            self.styles.default = style_id

    def _based_on(self, attributes: Mapping[str, str]) -> None:
        if self._style is not None:
            self._style.based_on = attribute(attributes, "val")

    def _outline(self, attributes: Mapping[str, str]) -> None:
        if self._style is not None:
            self._style.level = outline_level(attributes)

    def _numbering(self, attributes: Mapping[str, str]) -> None:
        if self._style is not None:
            self._style.listed = attribute(attributes, "val") != "0"

    def _vanish(self, attributes: Mapping[str, str]) -> None:
        if self._style is not None:
            self._style.hidden = is_on(attribute(attributes, "val"))


_STYLE = word("style")

#: Elements with properties as they were before a tracked change.
FORMER_PROPERTIES = (
    *("pPrChange", "rPrChange", "sectPrChange", "tblPrChange", "tblPrExChange", "tblGridChange", "tcPrChange"),
    "trPrChange",
)


def is_on(value: str | None) -> bool:
    """Of a switch: on where it stands without a value."""
    return value not in ("0", "false", "off")


def outline_level(attributes: Mapping[str, str]) -> int | None:
    """1 to 9, `BODY_TEXT` where the text is said to be none, None for what is no level."""
    value = attribute(attributes, "val") or ""
    if not (value.isascii() and value.isdigit()):
        return None
    return int(value) + 1 if len(value) == 1 and value != "9" else BODY_TEXT
