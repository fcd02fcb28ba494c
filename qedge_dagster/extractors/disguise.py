"""What a file is whose name says something else."""

from __future__ import annotations

import re

__all__ = ["content_of"]

_CONTENT = (
    (re.compile(rb"%PDF-"), "a PDF document"),
    (re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html|head|body)\b", re.I), "HTML, a web page"),
    (re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<\?xml\b"), "XML"),
    (re.compile(rb"PK\x03\x04"), "a ZIP archive"),
    (re.compile(rb"\x1f\x8b\x08"), "a gzip archive"),
    (re.compile(rb"\x89PNG\r\n"), "a PNG image"),
    (re.compile(rb"\xff\xd8\xff"), "a JPEG image"),
    (re.compile(rb"\xd0\xcf\x11\xe0"), "an OLE document"),
    (re.compile(rb"\{\\rtf"), "RTF"),
    (re.compile(rb"%!PS"), "PostScript"),
)


def content_of(head: bytes) -> str | None:
    """In words, by the first bytes; None for what is not known here."""
    return next((what for pattern, what in _CONTENT if pattern.match(head)), None)
