"""The text alone, by docx2txt, where the structure of a document cannot be followed."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO

from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.docx.opening import PLAIN_MAIN_PART
from qedge_dagster.extractors.docx.package import Package
from qedge_dagster.extractors.docx.xml import PartReader, parse

__all__ = ["plain_paragraphs"]

_PARAGRAPH_END = re.compile(r"\n\s*\n")
_PIECE = 1024 * 1024


def plain_paragraphs(package: Package, main: str) -> list[str]:
    """Raises `QedgeError` 6104 where docx2txt has no text either."""
    import docx2txt

    # It reads parts whole, by names as they are, and whatever they declare. So the main part is looked through within
    # its bounds first, and then given to it alone.
    with package.open(main) as content:
        parse(content, PartReader(), main)
    with BytesIO() as alone:
        with (
            package.open(main) as content,
            zipfile.ZipFile(alone, "w") as archive,
            archive.open(PLAIN_MAIN_PART, "w", force_zip64=True) as copy,
        ):
            while piece := content.read(_PIECE):
                copy.write(piece)
        try:
            text = str(docx2txt.process(alone))
        except (OSError, MemoryError):
            raise
        except Exception as error:
            raise QedgeError(6104, f"no text can be made out: {type(error).__name__}") from error
    return [paragraph.strip() for paragraph in _PARAGRAPH_END.split(text) if paragraph.strip()]
