"""What a document says of itself: the core properties. Dates and names of those who saved it are left out: they change
with every save, and the text does not."""

from __future__ import annotations

from collections.abc import Mapping

from qedge_dagster.documents import normalize_text
from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.docx.package import Package
from qedge_dagster.extractors.docx.xml import PartReader, parse

__all__ = ["read_properties"]

_DUBLIN_CORE = "http://purl.org/dc/elements/1.1/ "
_CORE = "http://schemas.openxmlformats.org/package/2006/metadata/core-properties "
_STRICT_CORE = "http://purl.oclc.org/ooxml/package/metadata/core-properties "
_NAMES = {
    _DUBLIN_CORE + "title": "title",
    _DUBLIN_CORE + "creator": "author",
    _DUBLIN_CORE + "subject": "subject",
    _CORE + "keywords": "keywords",
    _STRICT_CORE + "keywords": "keywords",
}
_MAX_CHARACTERS = 1000


def read_properties(package: Package) -> dict[str, str]:
    """Those that there are and that can be read."""
    reader = _PropertiesReader()
    try:
        for relation in package.relations(""):
            if relation.kind == "core-properties" and relation.target in package:
                with package.open(relation.target) as stream:
                    parse(stream, reader, relation.target)
    except QedgeError as error:
        if error.code != 6104:
            raise
    shown = {name: normalize_text(" ".join("".join(parts).split())) for name, parts in reader.found.items()}
    return {name: text[:_MAX_CHARACTERS] for name, text in shown.items() if text}


class _PropertiesReader(PartReader):
    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}
        self._name: str | None = None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:  # noqa: ARG002
        self._name = _NAMES.get(name)

    def end(self, name: str) -> None:  # noqa: ARG002
        self._name = None

    def characters(self, text: str) -> None:
        if self._name is not None:
            self.found.setdefault(self._name, []).append(text)
