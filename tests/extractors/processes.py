"""Processes as Linux shows them, and a document that keeps one busy."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from tests.extractors.pdf.builder import build, pages

__all__ = ["children", "endless_pdf", "lives", "wait_until_gone", "workers_of"]


def children(pid: int | str = "self") -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has ended in between
            found += map(int, (task / "children").read_text().split())
    return found


def workers_of(pid: int) -> list[int]:
    """The processes that extract for the process `pid`."""
    return [child for child in children(pid) if b"extractors.worker" in Path(f"/proc/{child}/cmdline").read_bytes()]


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 10
    while lives(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def endless_pdf() -> bytes:
    """A page that is drawn a thousand million times: each of nine forms draws the next one ten times."""
    names = " ".join(f"/X{number} {number} 0 R" for number in range(101, 111))
    forms = [
        f"{number} 0 obj\n<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << {names} >> >> >>\n"
        f"stream\n{f'/X{number + 1} Do ' * 10}\nendstream\nendobj"
        for number in range(101, 110)
    ]
    last = "110 0 obj\n<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] >>\nstream\nq Q\nendstream\nendobj"
    resources = f"/XObject << {names} >>"
    return build("\n".join([pages(["/X101 Do"], resources), *forms, last]))
