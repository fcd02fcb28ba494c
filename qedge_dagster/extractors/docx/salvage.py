"""The text alone, by docx2txt, where the structure of a document cannot be followed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import BinaryIO

from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.docx.opening import PLAIN_MAIN_PART
from qedge_dagster.extractors.docx.package import Package
from qedge_dagster.extractors.docx.xml import parse

__all__ = ["plain_paragraphs"]

_PARAGRAPH_END = re.compile(r"\n\s*\n")
#: What docx2txt reads.
_READ = re.compile(r"word/(?:header|footer)\d*\.xml")


def plain_paragraphs(package: Package, stream: BinaryIO) -> list[str]:
    """Raises `QedgeError` 6104 where docx2txt has no text either."""
    import docx2txt

    # It reads parts whole, and whatever they declare: that they keep within bounds is seen before.
    for part in package:
        if part == PLAIN_MAIN_PART or _READ.match(part):
            with package.open(part) as content:
                parse(content, _Nothing(), part)
    try:
        stream.seek(0)
        text = str(docx2txt.process(stream))
    except (OSError, MemoryError):
        raise
    except Exception as error:
        raise QedgeError(6104, f"no text can be made out: {type(error).__name__}") from error
    return [paragraph.strip() for paragraph in _PARAGRAPH_END.split(text) if paragraph.strip()]


class _Nothing:
    """Of a part that is only checked."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        pass

    def end(self, name: str) -> None:
        pass

    def characters(self, text: str) -> None:
        pass
