"""The process that extracts, started by `extractors.isolation`.

It answers one request after the other: which extractor, which item, then the document's bytes. Its parent may kill it
at any moment, and it does not outlive its parent.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from importlib import import_module
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, cast

from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.base import ExtractionContext, Extractor
from qedge_dagster.extractors.frames import FrameError, document_to, read_frame, write_json
from qedge_dagster.sources.base import SourceItem

_IN_MEMORY = 8 * 1024 * 1024
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def main() -> None:
    requests, answers = _take_pipes()
    _die_with(int(sys.argv[1]), int(sys.argv[2]))
    _limit_memory(int(sys.argv[3]))
    extractors: dict[str, Extractor] = {}
    with suppress(FrameError):  # the parent has closed the pipe: the work is over
        while True:
            kind, data = read_frame(requests)
            if kind != b"J":
                raise FrameError("a request begins with JSON")
            with SpooledTemporaryFile(_IN_MEMORY) as content:
                while (frame := read_frame(requests))[0] == b"D":
                    content.write(frame[1])
                write_json(answers, _answer(extractors, data, cast("BinaryIO", content)))


def _answer(extractors: dict[str, Extractor], request: bytes, content: BinaryIO) -> dict[str, Any]:
    wanted: dict[str, Any] = json.loads(request)
    try:
        if wanted["extractor"] not in extractors:
            module, _, name = wanted["type"].partition(":")
            extractors[wanted["extractor"]] = getattr(import_module(module), name)(**wanted["options"])
        extractor = extractors[wanted["extractor"]]

        def opened() -> BinaryIO:
            content.seek(0)
            return cast("BinaryIO", _Unclosed(content))

        item = SourceItem(wanted["document_id"], wanted["media_type"], opened, metadata=wanted["metadata"])
        return {"document": document_to(extractor.extract(item, ExtractionContext(wanted["normalize_text"])))}
    except QedgeError as error:
        return {"code": error.code, "message": error.message, "remedy": error.remedy}
    except MemoryError:
        return {"exhausted": True}
    except RecursionError:
        return {"code": 6102, "message": "the content is nested too deeply"}
    except Exception as error:  # the type alone: a parser's message may quote the document
        return {"code": 6102, "message": f"the {wanted['extractor_id']} extractor raised {type(error).__name__}"}


class _Unclosed:
    """The stream of one `open`, which an extractor closes; the content is read again by the next."""

    def __init__(self, content: BinaryIO) -> None:
        self._content = content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    def __enter__(self) -> _Unclosed:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Keep the pipes to ourselves: what a parser prints, from C or from Python, must not get into the answers."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    return requests, answers


def _die_with(parent: int, lifeline: int) -> None:
    """End when the parent does, however it ends and whatever this process is doing.

    `lifeline` is the reading end of a pipe whose other end only the parent has; -1 where there is none.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # it had died before
            os._exit(1)
    if lifeline >= 0:
        threading.Thread(target=_exit_at_end_of, args=(lifeline,), daemon=True).start()


def _exit_at_end_of(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(1)


def _limit_memory(limit: int) -> None:
    """At most so many bytes more than the interpreter takes. Nowhere but on POSIX."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no copy of the document behind
        with open("/proc/self/statm") as statm:
            taken = int(statm.read().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (taken + limit, hard))
