"""Word documents from readable source: the inside of their parts, without the wrapping."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

from qedge_dagster.documents import ExtractedDocument, media_type_for
from qedge_dagster.extractors import DocxExtractor, ExtractionContext
from qedge_dagster.sources import SourceItem

__all__ = ["FIXTURES", "archive", "build", "docx_item", "extract", "part", "read_fixture", "shown"]

FIXTURES = Path(__file__).parents[2] / "fixtures" / "docx"

_TRANSITIONAL = "http://schemas.openxmlformats.org/"
_STRICT = "http://purl.oclc.org/ooxml/"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"


def part(root: str, inside: str, *, strict: bool = False) -> str:
    """A part, such as "document", around what is inside."""
    root = {"header": "hdr", "footer": "ftr"}.get(root, root)
    names = (
        ("w", f"{_STRICT}wordprocessingml/main" if strict else f"{_TRANSITIONAL}wordprocessingml/2006/main"),
        (
            "r",
            f"{_STRICT}officeDocument/relationships" if strict else f"{_TRANSITIONAL}officeDocument/2006/relationships",
        ),
        ("m", f"{_STRICT}officeDocument/math" if strict else f"{_TRANSITIONAL}officeDocument/2006/math"),
        ("mc", f"{_TRANSITIONAL}markup-compatibility/2006"),
        ("a", f"{_STRICT}drawingml/main" if strict else f"{_TRANSITIONAL}drawingml/2006/main"),
        ("c", f"{_STRICT}drawingml/chart" if strict else f"{_TRANSITIONAL}drawingml/2006/chart"),
        ("dgm", f"{_STRICT}drawingml/diagram" if strict else f"{_TRANSITIONAL}drawingml/2006/diagram"),
        ("wps", "http://schemas.microsoft.com/office/word/2010/wordprocessingShape"),
        ("v", "urn:schemas-microsoft-com:vml"),
    )
    spaces = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in names)
    if root == "document":
        inside = f"<w:body>{inside}<w:sectPr/></w:body>"
    return f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<w:{root} {spaces}>{inside}</w:{root}>'


def build(
    insides: Mapping[str, str] | str,
    *,
    main: str = "word/document.xml",
    strict: bool = False,
    stamp: tuple[int, int, int, int, int, int] = (1980, 1, 1, 0, 0, 0),
    more: Mapping[str, str | bytes] | None = None,
) -> bytes:
    """The file. A string is the inside of the body; `more` are parts as they are."""
    insides = {main: insides} if isinstance(insides, str) else insides
    roots = {name: "document" if name == main else re.sub(r"\d", "", Path(name).stem) for name in insides}
    parts: dict[str, str | bytes] = {name: part(roots[name], insides[name], strict=strict) for name in insides}
    kinds = (
        _STRICT + "officeDocument/relationships/" if strict else _TRANSITIONAL + "officeDocument/2006/relationships/"
    )
    beside = [name for name in parts if name != main]
    wrapping = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "_rels/.rels": _relations([(kinds + "officeDocument", quote(main))]),
    }
    folder, _, name = main.rpartition("/")
    targets = [(kinds + roots[other], f"/{other}") for other in beside]
    wrapping[f"{folder}/_rels/{name}.rels".lstrip("/")] = _relations(targets)
    return archive({**wrapping, **parts, **(more or {})}, stamp=stamp)


def archive(
    parts: Mapping[str, str | bytes], *, stamp: tuple[int, int, int, int, int, int] = (1980, 1, 1, 0, 0, 0)
) -> bytes:
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in parts.items():
            file.writestr(zipfile.ZipInfo(name, stamp), data, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def _relations(targets: list[tuple[str, str]]) -> str:
    entries = "".join(
        f'<Relationship Id="rId{number}" Type="{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{_RELATIONS}">{entries}</Relationships>'


def docx_item(data: bytes, name: str = "a.docx") -> SourceItem:
    return SourceItem(name, media_type_for(name), lambda: BytesIO(data))


def extract(data: bytes, *, normalize_text: bool = True, **options: Any) -> ExtractedDocument:
    return DocxExtractor(**options).extract(docx_item(data), ExtractionContext(normalize_text))


def shown(document: ExtractedDocument) -> list[str]:
    """A block or warning a line, as in the fixtures."""
    lines = [
        f"{block.kind} {block.heading_level or ''}".rstrip() + f": {document.text[block.start : block.end]}"
        for block in document.blocks
    ]
    lines = [line.replace("\n", "⏎").replace("\t", "⇥") for line in lines]
    return [*lines, *(f"warning: {warning}" for warning in document.warnings)]


def read_fixture(name: str) -> tuple[dict[str, str], list[str]]:
    """The insides of the parts, and the lines that are expected."""
    _, *sections = re.split(r"^-- (.+)\n", (FIXTURES / f"{name}.txt").read_text("utf-8"), flags=re.MULTILINE)
    insides = dict(zip(sections[::2], sections[1::2], strict=True))
    return insides, insides.pop("expected").splitlines()
