"""Options of `qedge ingest` for single formats, and what they mean for the extractors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from qedge_dagster.cli.options import group

__all__ = ["docx_settings", "extraction_arguments", "format_options", "pdf_settings"]


class _Lines(click.types.StringParamType):
    """Of an environment variable with several values, each has a line: a password may hold spaces."""

    envvar_list_splitter = "\n"


format_options = group(
    click.option(
        "--extraction-seconds",
        type=click.FloatRange(min=0, min_open=True),
        default=120,
        show_default=True,
        help="Longest extraction of one PDF or DOCX. One that takes longer fails with 6102.",
    ),
    click.option(
        "--extraction-mib",
        type=click.IntRange(min=64),  # less, and the libraries themselves do not fit
        default=1024,
        show_default=True,
        help="Most memory for the extraction of one PDF or DOCX, in MiB. One that needs more fails with 6102.",
    ),
    click.option(
        "--pdf-reading-order",
        type=click.Choice(["content", "layout"]),
        default="content",
        show_default=True,
        help="Order of the text of a PDF: as the file has it, or column by column.",
    ),
    click.option(
        "--pdf-password",
        "pdf_passwords",
        multiple=True,
        type=_Lines(),
        envvar="QEDGE_PDF_PASSWORDS",
        help="Password to try on encrypted PDFs. May be repeated; never stored or shown."
        "  [default: the lines of QEDGE_PDF_PASSWORDS]",
    ),
    click.option("--pdf-keep-hyphens", is_flag=True, help="Leave words of a PDF broken at the ends of lines."),
    click.option(
        "--pdf-page-seconds",
        type=click.FloatRange(min=0, min_open=True),
        default=20,
        show_default=True,
        help="Longest time for one page of a PDF. A document with one that takes longer fails with 6107;"
        " the pages up to it are indexed.",
    ),
    click.option("--docx-no-notes", is_flag=True, help="Leave out the foot- and endnotes of a DOCX."),
    click.option("--docx-no-text-boxes", is_flag=True, help="Leave out the text boxes of a DOCX."),
    click.option("--docx-headers-footers", is_flag=True, help="Read the headers and footers of a DOCX, each once."),
    click.option("--docx-hidden-text", is_flag=True, help="Read text of a DOCX that is formatted as hidden."),
    click.option("--strict-utf8", is_flag=True, help="Text files that are no UTF-8 fail with 6106."),
)


def pdf_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """By the names of the extractor's options; passwords are no setting."""
    return {
        "reading_order": values["pdf_reading_order"],
        "join_hyphens": not values["pdf_keep_hyphens"],
        "page_budget": values["pdf_page_seconds"],
    }


def docx_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "notes": not values["docx_no_notes"],
        "text_boxes": not values["docx_no_text_boxes"],
        "headers_footers": values["docx_headers_footers"],
        "hidden_text": values["docx_hidden_text"],
    }


def extraction_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `default_extractors`."""
    return {
        "strict_utf8": values["strict_utf8"],
        **{f"pdf_{name}": value for name, value in pdf_settings(values).items()},
        "pdf_passwords": values["pdf_passwords"],
        **{f"docx_{name}": value for name, value in docx_settings(values).items()},
    }
