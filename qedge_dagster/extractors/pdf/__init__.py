"""PDF, by pdfminer.six: imported when the first document is read, never before."""

from __future__ import annotations

from qedge_dagster.extractors.pdf.extractor import PdfExtractor, ReadingOrder

__all__ = ["PdfExtractor", "ReadingOrder"]
