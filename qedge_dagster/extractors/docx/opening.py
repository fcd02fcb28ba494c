"""Opening a file: passwords, and what is no Word document at all."""

from __future__ import annotations

from typing import BinaryIO

from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.disguise import content_of
from qedge_dagster.extractors.docx.package import Package

__all__ = ["PLAIN_MAIN_PART", "open_package"]

#: Where the document is, as a rule. Only the package's relations say so for certain.
PLAIN_MAIN_PART = "word/document.xml"

_HEAD_BYTES = 1024
_PIECE = 1024 * 1024
_ARCHIVE = b"PK"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# The name of the stream that an encrypted document is put into; old documents have one of the other name.
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_OLD = "WordDocument".encode("utf-16-le")


def open_package(stream: BinaryIO) -> Package:
    """Raises `QedgeError` 6103 for a document with a password, 6104 for anything else that is none."""
    head = stream.read(_HEAD_BYTES)
    if head.startswith(_OLE):
        raise _of_ole(stream)
    if not head.strip(b"\0\t\n\f\r "):
        raise QedgeError(6104, "the file is empty" if not head else "the file begins with nothing but blanks")
    what = content_of(head)
    if not head.startswith(_ARCHIVE):
        raise QedgeError(6104, f"the content is {what or 'something else'}, not a Word document")
    package = Package(stream)
    if package.main_part() is None and PLAIN_MAIN_PART not in package:
        raise QedgeError(6104, f"the content is {package.kind}, not a Word document")
    return package


def _of_ole(stream: BinaryIO) -> QedgeError:
    """What it is that lies in the container which Word used before 2007, and still uses for encrypted documents."""
    names: set[bytes] = set()
    tail = b""
    stream.seek(0)
    while piece := stream.read(_PIECE):
        names.update(name for name in (_ENCRYPTED, _OLD) if name in tail + piece)
        tail = piece[-len(_ENCRYPTED) :]
    if _ENCRYPTED in names:
        return QedgeError(
            6103,
            "the document is encrypted with a password, and those of Word documents are not tried",
            remedy="save it without its password",
        )
    if _OLD in names:
        return QedgeError(
            6104,
            "the content is a Word document of the old kind (.doc): save it as .docx",
            remedy="save it as .docx, in Word or with `soffice --convert-to docx` of LibreOffice",
        )
    return QedgeError(6104, "the content is an OLE document of another program, not a Word document")
