"""Word documents."""

from __future__ import annotations

from qedge_dagster.extractors.docx.extractor import DocxExtractor

__all__ = ["DocxExtractor"]
