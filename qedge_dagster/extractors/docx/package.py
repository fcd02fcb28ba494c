"""The archive that a Word document is: its parts, found by their relations and read within bounds."""

from __future__ import annotations

import errno
import posixpath
import zipfile
import zlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple, cast
from urllib.parse import unquote

from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.docx.xml import PartReader, attribute, parse, shown

__all__ = ["Package", "Relation"]

# Large parts shrink to a hundredth, or two hundredth where all rows are alike; bombs to a thousandth.
_MAX_BYTES = 256 * 1024 * 1024
_FREE_BYTES = 16 * 1024 * 1024
_MAX_RATIO = 400
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # of Word; others expand in one piece
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
    id: str = ""


class Package:
    """Raises `QedgeError` 6104 where `stream` is no archive."""

    def __init__(self, stream: BinaryIO) -> None:
        try:
            self._archive = zipfile.ZipFile(stream)
        except _BROKEN as error:
            raise _no_whole_archive() from error
        except OSError as error:
            if error.errno != errno.EINVAL:  # a table of contents that points before the file
                raise
            raise _no_whole_archive() from error
        # Names of parts are compared without regard to case.
        self._entries = {_normal(entry.filename): entry for entry in self._archive.infolist()}

    def __contains__(self, part: str) -> bool:
        return _normal(part) in self._entries

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
        # A part is related once, however often and in whatever letters that is said.
        once = {(relation.kind, _normal(relation.target), relation.id): relation for relation in reader.found}
        return list(once.values())

    @contextmanager
    def open(self, part: str) -> Generator[BinaryIO]:
        """Raises `QedgeError` 6104 for a part that is missing, damaged, encrypted, or expands beyond all measure."""
        entry = self._entries.get(_normal(part))
        if entry is None:
            raise QedgeError(6104, f"{shown(part)} is missing from the archive")
        if entry.flag_bits & 1:
            raise QedgeError(6103, "the archive is encrypted")
        if entry.compress_type not in _METHODS:
            raise QedgeError(6104, f"{shown(part)} is compressed by a method that no Word document uses")
        limit = min(_MAX_BYTES, max(_FREE_BYTES, entry.compress_size * _MAX_RATIO))
        try:
            with self._archive.open(entry) as stream:
                yield cast(BinaryIO, _Bounded(stream, part, limit))
        except _BROKEN as error:
            raise QedgeError(6104, f"{shown(part)} is damaged") from error


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
            raise QedgeError(
                6104, f"{shown(self._part)} expands beyond all measure: refused, as it may be an archive bomb"
            )
        return data


class _RelationReader(PartReader):
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.found: list[Relation] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        kind, target = attribute(attributes, "Type"), attribute(attributes, "Target")
        if name.endswith(" Relationship") and kind and target and attribute(attributes, "TargetMode") != "External":
            path = posixpath.join("/", self._folder, unquote(target.replace("\\", "/")))
            name = posixpath.normpath(path).lstrip("/")
            self.found.append(Relation(kind.rpartition("/")[2], name, attribute(attributes, "Id") or ""))


def _no_whole_archive() -> QedgeError:
    return QedgeError(6104, "the file is damaged or was cut off: it is no whole archive")


def _normal(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").lower()
