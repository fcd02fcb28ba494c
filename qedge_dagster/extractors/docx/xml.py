"""XML parts as a stream of events: no tree, no document type, no entity but the five that XML itself has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import BinaryIO, NoReturn, Protocol, TypeVar
from xml.parsers import expat

from qedge_dagster.errors import QedgeError

__all__ = ["PartReader", "UnexpectedRoot", "attribute", "math", "named", "parse", "word"]

_PIECE = 64 * 1024
_SEPARATOR = " "
# The first two by the standard; the others have been seen.
_ENCODINGS = frozenset({"utf-8", "utf-16", "us-ascii", "iso-8859-1", "windows-1252"})
_WORD = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",  # Strict
)
_MATH = (
    "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "http://purl.oclc.org/ooxml/officeDocument/math",
)


class PartReader(Protocol):
    """What is made of a part. Names are `namespace local`, those of attributes without a namespace `local`."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None: ...
    def end(self, name: str) -> None: ...
    def characters(self, text: str) -> None: ...


class UnexpectedRoot(Exception):
    """The part is XML of another kind. Its argument is the local name of the root."""


_Value = TypeVar("_Value")


def named(elements: Mapping[str, _Value]) -> dict[str, _Value]:
    """By full name what is given by the local names of WordprocessingML elements."""
    return {name: value for local, value in elements.items() for name in word(local)}


def word(local: str) -> tuple[str, ...]:
    """The names of a WordprocessingML element, in each form of the format."""
    return tuple(uri + _SEPARATOR + local for uri in _WORD)


def math(local: str) -> tuple[str, ...]:
    return tuple(uri + _SEPARATOR + local for uri in _MATH)


def attribute(attributes: Mapping[str, str], local: str) -> str | None:
    """By local name: some programs leave the prefix out."""
    for name, value in attributes.items():
        if name == local or name.endswith(_SEPARATOR + local):
            return value
    return None


def parse(stream: BinaryIO, reader: PartReader, part: str, roots: Collection[str] = (), piece: int = _PIECE) -> None:
    """Raises `QedgeError` 6104 for what is not well-formed or brings a document type, `UnexpectedRoot` for another root
    than `roots`."""
    parser = expat.ParserCreate(namespace_separator=_SEPARATOR)
    parser.buffer_text = True

    def refuse(*_: object) -> NoReturn:
        raise QedgeError(6104, f"{part} has a document type, as no Word document has: it may be a trap")

    def declaration(_version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.lower() not in _ENCODINGS:
            raise QedgeError(6104, f"{part} says that it is in an encoding that no Word document is in")

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
        raise QedgeError(6104, f"{part} is damaged: {expat.ErrorString(error.code)} in line {error.lineno}") from error
