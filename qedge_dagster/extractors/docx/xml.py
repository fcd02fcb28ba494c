"""XML parts as a stream of events: no tree, no document type, no entity but the five that XML itself has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import BinaryIO, NoReturn, TypeVar
from xml.parsers import expat

from qedge_dagster.errors import QedgeError

__all__ = [
    "PartReader",
    "UnexpectedRoot",
    "attribute",
    "chart",
    "diagram",
    "drawing",
    "math",
    "named",
    "parse",
    "shown",
    "word",
]

_PIECE = 64 * 1024
_SEPARATOR = " "
_SHOWN = 80
# The first two by the standard; the others have been seen.
_ENCODINGS = frozenset({"utf-8", "utf-16", "us-ascii", "iso-8859-1", "windows-1252"})
_TRANSITIONAL, _STRICT = "http://schemas.openxmlformats.org/", "http://purl.oclc.org/ooxml/"


class PartReader:
    """What is made of a part: here, nothing. Names are `namespace local`, those of attributes without a namespace
    `local`."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        pass

    def end(self, name: str) -> None:
        pass

    def characters(self, text: str) -> None:
        pass


class UnexpectedRoot(Exception):
    """The part is XML of another kind. Its argument is the local name of the root."""


_Value = TypeVar("_Value")


def named(elements: Mapping[str, _Value]) -> dict[str, _Value]:
    """By full name what is given by the local names of WordprocessingML elements."""
    return {name: value for local, value in elements.items() for name in word(local)}


def word(local: str) -> tuple[str, str]:
    """The names of a WordprocessingML element, in both forms of the format."""
    return _names("wordprocessingml", "main", local)


def math(local: str) -> tuple[str, str]:
    return _names("officeDocument", "math", local)


def drawing(local: str) -> tuple[str, str]:
    return _names("drawingml", "main", local)


def chart(local: str) -> tuple[str, str]:
    return _names("drawingml", "chart", local)


def diagram(local: str) -> tuple[str, str]:
    return _names("drawingml", "diagram", local)


def _names(family: str, part: str, local: str) -> tuple[str, str]:
    name = part + _SEPARATOR + local
    return f"{_TRANSITIONAL}{family}/2006/{name}", f"{_STRICT}{family}/{name}"


def attribute(attributes: Mapping[str, str], local: str) -> str | None:
    """By local name: some programs leave the prefix out."""
    for name, value in attributes.items():
        if name == local or name.endswith(_SEPARATOR + local):
            return value
    return None


def shown(part: str) -> str:
    """The name of a part for a message: a file may call its parts anything."""
    text = "".join(character if character.isprintable() else "\ufffd" for character in part)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def parse(stream: BinaryIO, reader: PartReader, part: str, roots: Collection[str] = (), piece: int = _PIECE) -> None:
    """Raises `QedgeError` 6104 for what is not well-formed or brings a document type, `UnexpectedRoot` for another root
    than `roots`."""
    parser = expat.ParserCreate(namespace_separator=_SEPARATOR)
    parser.buffer_text = True

    def refuse(*_: object) -> NoReturn:
        raise QedgeError(6104, f"{shown(part)} has a document type, as no Word document has: it may be a trap")

    def declaration(_version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.lower() not in _ENCODINGS:
            raise QedgeError(6104, f"{shown(part)} is in another encoding than UTF-8 and UTF-16")

    def root(name: str, attributes: dict[str, str]) -> None:
        if roots and name not in roots:
            raise UnexpectedRoot(name.rpartition(_SEPARATOR)[2])
        parser.StartElementHandler = reader.start
        reader.start(name, attributes)

    parser.XmlDeclHandler = declaration
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = root
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    try:
        while data := stream.read(piece):
            parser.Parse(data, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code)
        raise QedgeError(6104, f"{shown(part)} is damaged: {what} in line {error.lineno}") from error
