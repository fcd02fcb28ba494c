"""The archive that a Word document is: its parts, found by their relations and read within bounds."""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple, cast
from urllib.parse import unquote

from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.docx.xml import attribute, parse

__all__ = ["Package", "Relation"]

# Real parts of this size do not shrink to a hundredth; bombs do, to a thousandth.
_MAX_BYTES = 256 * 1024 * 1024
_FREE_BYTES = 16 * 1024 * 1024
_MAX_RATIO = 200
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)

#: What an archive is that holds such an entry, and no Word document.
_OTHER_ARCHIVES = (
    ("xl/", "an Excel workbook"),
    ("ppt/", "a PowerPoint presentation"),
    ("visio/", "a Visio drawing"),
    ("content.xml", "an OpenDocument file"),
    ("meta-inf/container.xml", "an EPUB book"),
    ("meta-inf/manifest.mf", "a Java archive"),
)


class Relation(NamedTuple):
    """`kind` is the last part of the type's address, `target` the name of a part."""

    kind: str
    target: str


class Package:
    """Raises `QedgeError` 6104 where `stream` is no archive."""

    def __init__(self, stream: BinaryIO) -> None:
        try:
            self._archive = zipfile.ZipFile(stream)
        except _BROKEN as error:
            raise QedgeError(6104, "the file is damaged or was cut off: it is no whole archive") from error
        # Names of parts are compared without regard to case.
        self._entries = {_normal(entry.filename): entry for entry in self._archive.infolist()}

    def __contains__(self, part: str) -> bool:
        return _normal(part) in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    @property
    def kind(self) -> str:
        """What the archive seems to be, if it is no Word document."""
        for start, what in _OTHER_ARCHIVES:
            if any(name.startswith(start) for name in self._entries):
                return what
        return "a ZIP archive"

    def main_part(self) -> str | None:
        """The part that the package itself names as its document, if there is one."""
        for relation in self.relations(""):
            if relation.kind == "officeDocument" and relation.target in self:
                return relation.target
        return None

    def relations(self, part: str) -> list[Relation]:
        """Those of a part, or of the package itself (""), to other parts of the package."""
        folder, name = posixpath.split(part)
        relations = posixpath.join(folder, "_rels", name + ".rels")
        if relations not in self:
            return []
        reader = _RelationReader(folder)
        with self.open(relations) as stream:
            parse(stream, reader, relations)
        return reader.found

    @contextmanager
    def open(self, part: str) -> Generator[BinaryIO]:
        """Raises `QedgeError` 6104 for a part that is missing, damaged, encrypted, or expands beyond all measure."""
        entry = self._entries.get(_normal(part))
        if entry is None:
            raise QedgeError(6104, f"{part} is missing from the archive")
        if entry.flag_bits & 1:
            raise QedgeError(6103, "the archive is encrypted")
        limit = min(_MAX_BYTES, max(_FREE_BYTES, entry.compress_size * _MAX_RATIO))
        try:
            with self._archive.open(entry) as stream:
                yield cast(BinaryIO, _Bounded(stream, part, limit))
        except _BROKEN as error:
            raise QedgeError(6104, f"{part} is damaged") from error


class _Bounded:
    """Counts what comes: what the archive says of sizes may be wrong."""

    def __init__(self, stream: object, part: str, limit: int) -> None:
        self._stream = cast(BinaryIO, stream)
        self._part = part
        self._left = limit

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise QedgeError(6104, f"{self._part} expands beyond all measure: refused, as it may be an archive bomb")
        return data


class _RelationReader:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.found: list[Relation] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        kind, target = attribute(attributes, "Type"), attribute(attributes, "Target")
        if name.endswith(" Relationship") and kind and target and attribute(attributes, "TargetMode") != "External":
            path = posixpath.join("/", self._folder, unquote(target.replace("\\", "/")))
            self.found.append(Relation(kind.rpartition("/")[2], posixpath.normpath(path).lstrip("/")))

    def end(self, name: str) -> None:
        pass

    def characters(self, text: str) -> None:
        pass


def _normal(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").lower()
