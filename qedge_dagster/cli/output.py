"""What reaches the terminal: results on stdout, everything else on stderr, nothing that could drive the terminal."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Sequence

import click

__all__ = ["cells", "counted", "emit", "emit_json", "fit", "note", "printable", "table", "terminal_width"]

#: Width of output that no terminal shows, so that files and pipes get the same text on every machine.
_PIPE_WIDTH = 100

_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d\u00ad")


def printable(text: str) -> str:
    """`text` with everything escaped that is no visible character: control and bidirectional characters, line ends,
    lone surrogates (undecodable bytes of a file name). Joiners stay: some scripts and emoji need them."""
    if text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) in _UNPRINTABLE and c not in _JOINERS else c
        for c in text
    )


def cells(text: str) -> int:
    """Columns that `text` takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_width(c) for c in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, width: int, *, keep_end: bool = False) -> str:
    """`text` in at most `width` columns; what is cut off is shown as `…`."""
    if cells(text) <= width:
        return text
    kept: list[str] = []
    room = width - 1
    for character in reversed(text) if keep_end else text:
        room -= _width(character)
        if room < 0:
            break
        kept.append(character)
    return "…" + "".join(reversed(kept)) if keep_end else "".join(kept).rstrip() + "…"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def terminal_width() -> int:
    if not sys.stdout.isatty():
        return _PIPE_WIDTH
    import shutil  # with every kind of archive: not for those who print to a pipe

    return max(40, shutil.get_terminal_size().columns)


def table(rows: Iterable[Sequence[object]], *, indent: str = "") -> list[str]:
    """Lines of left-aligned columns; the last column is never padded."""
    lines = [[printable(str(value)) for value in row] for row in rows]
    if not lines:
        return []
    widths = [max(cells(line[column]) for line in lines) for column in range(len(lines[0]) - 1)]
    return [
        indent
        + "".join(text + " " * (width - cells(text) + 2) for text, width in zip(line, widths, strict=False))
        + line[-1]
        for line in lines
    ]


def emit(text: str) -> None:
    """Print a result. A reader that has gone away (`| head -1`) is no error."""
    _write(text, err=False)


def emit_json(value: object) -> None:
    """Print a result as JSON. ASCII only: valid on any terminal and for any file name."""
    emit(json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False))


def note(text: str) -> None:
    """Print a line that is no result."""
    _write(text, err=True)


def _write(text: str, *, err: bool) -> None:
    stream = sys.stderr if err else sys.stdout
    try:
        # A character that the terminal's encoding lacks is shown escaped.
        click.echo(
            text.encode(stream.encoding or "utf-8", "backslashreplace").decode(stream.encoding or "utf-8"), err=err
        )
    except OSError as error:
        # What is still buffered would raise again when the interpreter shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError):
            raise
