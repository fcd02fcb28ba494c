"""File names → document ids: printable, unique in their folder, and the same on every machine.

An id is the NFC form of the name, so a name that macOS stores decomposed and Linux composed is one document. What
cannot be printed (bytes that are no UTF-8, control characters, line separators) is escaped as `%{hex of its bytes}`.
Where several names of one folder have the same NFC form, those that are not NFC themselves have everything outside
ASCII escaped. A literal `%{…}` that reads like an escape is escaped too: no two names share an id. The braces are there
because plain `%XX` occurs in real names, of files saved from URLs, and these keep their form.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from unicodedata import normalize

__all__ = ["document_names", "printable"]

_LOOKALIKE = r"%(?=\{[0-9A-F]+\})"
_UNPRINTABLE = re.compile(rf"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+|{_LOOKALIKE}")
_NOT_ASCII = re.compile(rf"[^\x20-\x7e]+|{_LOOKALIKE}")
_ENCODING, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()


def document_names(names: Sequence[str], *, on_disk: bool = True) -> list[str]:
    """The ids of the names of one folder, in their order. A `/` stays what it is. `on_disk` names are as Python reads
    them from this machine's file system; others are plain text, such as the keys of an object store."""
    if _is_plain("".join(names)):  # at once, as one check for each name costs more than listing it
        return list(names)
    decoded = [_as_utf8(name) if on_disk else name for name in names]
    escaped = [_UNPRINTABLE.sub(_escape, name) for name in decoded]
    ids = [normalize("NFC", name) for name in escaped]
    spellings = Counter(id_ for id_, _ in set(zip(ids, decoded, strict=True)))
    return [
        _NOT_ASCII.sub(_escape, raw) if spellings[id_] > 1 and id_ != name else id_
        for id_, name, raw in zip(ids, escaped, decoded, strict=True)
    ]


def printable(name: str) -> str:
    """One name or path, fit for a message or an id."""
    return document_names((name,))[0]


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isprintable() and "%{" not in name


def _as_utf8(name: str) -> str:
    # Under a locale that is not UTF-8, Python decodes names in that locale: the id must not depend on it.
    return name if _ENCODING == "utf-8" else name.encode(_ENCODING, _ERRORS).decode("utf-8", _ERRORS)


def _escape(match: re.Match[str]) -> str:
    return f"%{{{match[0].encode('utf-8', _ERRORS).hex().upper()}}}"
