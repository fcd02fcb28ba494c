"""Extraction where it can be killed: a process for the formats whose parsers can hang, crash or eat memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, cast, runtime_checkable

from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.base import ExtractionContext, Extractor
from qedge_dagster.extractors.frames import FrameError, document_from, read_frame, write_frame, write_json
from qedge_dagster.sources.base import SourceItem

__all__ = ["ExtractionLimits", "ExtractionProcess", "Isolated", "isolate"]

_PIECE = 1024 * 1024
# Parsers keep caches, and what they leak is given back with the process.
_DOCUMENTS_PER_PROCESS = 200
_DYING_SECONDS = 1.0
_RAISE = "raise extraction_seconds or extraction_memory, or exclude the file; the next run tries it again"
# With the module path of this process: Python would put the current folder first, and among the documents there may be
# one called json.py.
_PROGRAM = "import sys; sys.path[:] = sys.argv[4:]; from qedge_dagster.extractors.worker import main; main()"


@runtime_checkable
class Isolated(Extractor, Protocol):
    """An extractor that is not to be run in the engine's own process."""

    def isolated(self) -> Mapping[str, Any]:
        """The arguments, as JSON holds them, that make another one like it in another process."""
        ...


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """What one document may take: `seconds` by the clock, and `memory` in bytes beyond what an idle process has."""

    seconds: float
    memory: int


class ExtractionProcess:
    """The process, started with the first document and again after one that was killed or died. One thread at a time.

    Close it, or leave it to the end of this process, which it does not outlive.
    """

    def __init__(self, limits: ExtractionLimits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline = -1
        self._documents = 0

    def extract(self, extractor: Isolated, item: SourceItem, context: ExtractionContext) -> ExtractedDocument:
        """As `extractor.extract`, except that a hang, a crash or a want of memory is `QedgeError` 6102 as well. What
        `item.open` raises passes through."""
        if self._documents >= _DOCUMENTS_PER_PROCESS:
            self.close()
        with item.open() as stream:  # before a process is started for nothing
            process = self._started()
            self._documents += 1
            late = threading.Event()
            timer = threading.Timer(self._limits.seconds, self._kill_late, (process, late))
            timer.daemon = True
            timer.start()
            try:
                answer = self._ask(process, extractor, item, context, stream)
            except (FrameError, BrokenPipeError, ValueError) as error:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_DYING_SECONDS)  # so that its own exit code is seen, not that of our signal
                died = process.poll()
                self._end(process)
                raise QedgeError(6102, self._why(died, late), remedy=_RAISE if late.is_set() else None) from error
            except BaseException:  # a document that was sent in part
                self._end(process)
                raise
            finally:
                timer.cancel()
                timer.join()
            if late.is_set():  # it answered at the last moment, and is dead now all the same
                self._end(process)
        if "document" in answer:
            return document_from(answer["document"])
        if "exhausted" in answer:
            self._end(process)
            message = f"extraction took more than {self._limits.memory >> 20} MiB of memory"
            raise QedgeError(6102, message, remedy=_RAISE)
        raise QedgeError(answer["code"], answer["message"], remedy=answer.get("remedy"))

    def close(self) -> None:
        """End the process. Another one is started if it is needed again."""
        if self._process is not None:
            self._end(self._process)

    def _ask(
        self,
        process: subprocess.Popen[bytes],
        extractor: Isolated,
        item: SourceItem,
        context: ExtractionContext,
        stream: BinaryIO,
    ) -> dict[str, Any]:
        kind, options = type(extractor), dict(extractor.isolated())
        requests, answers = cast("BinaryIO", process.stdin), cast("BinaryIO", process.stdout)
        request = {
            # One that was made with these options is used again.
            "extractor": repr((kind.__module__, kind.__qualname__, sorted(options.items()))),
            "extractor_id": extractor.id,
            "type": f"{kind.__module__}:{kind.__qualname__}",
            "options": options,
            "document_id": item.document_id,
            "media_type": item.media_type,
            "metadata": dict(item.metadata),
            "normalize_text": context.normalize_text,
        }
        write_json(requests, request)
        while piece := stream.read(_PIECE):
            write_frame(requests, b"D", piece)
        write_frame(requests, b"E")
        requests.flush()
        return cast("dict[str, Any]", json.loads(read_frame(answers)[1]))

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        ours, kept = -1, ()
        if os.name == "posix":
            theirs, ours = os.pipe()
            kept = (theirs,)
        arguments = [os.getpid(), kept[0] if kept else -1, self._limits.memory, *sys.path]
        try:
            # A session of its own: Ctrl-C on the terminal is for the engine, which stops at its next boundary.
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-c", _PROGRAM, *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=kept,
                start_new_session=True,
            )
        finally:
            for descriptor in kept:
                os.close(descriptor)
        self._lifeline, self._documents = ours, 0
        return self._process

    def _kill_late(self, process: subprocess.Popen[bytes], late: threading.Event) -> None:
        late.set()
        _kill(process)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        _kill(process)
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                cast("BinaryIO", stream).close()
        process.wait()
        if self._lifeline >= 0:
            os.close(self._lifeline)
        self._process, self._lifeline = None, -1

    def _why(self, code: int | None, late: threading.Event) -> str:
        if late.is_set():
            return f"extraction took longer than {self._limits.seconds:g} s"
        if code is None:
            return "the process that extracts answered with something that is no answer"
        if code < 0:
            return (
                f"the process that extracts was ended by {signal.Signals(-code).name}: its parser crashed on the file"
            )
        return f"the process that extracts ended with code {code}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)  # with whatever a parser has started
        else:
            process.kill()


def isolate(extractor: Extractor, process: ExtractionProcess) -> Extractor:
    """The same extractor, working in `process` if it asks for that."""
    return _IsolatedExtractor(extractor, process) if isinstance(extractor, Isolated) else extractor


class _IsolatedExtractor:
    def __init__(self, extractor: Isolated, process: ExtractionProcess) -> None:
        self._extractor = extractor
        self._process = process
        self.id, self.version, self.variant = extractor.id, extractor.version, extractor.variant
        self.extensions, self.media_types = extractor.extensions, extractor.media_types
        self.can_extract = extractor.can_extract

    def extract(self, item: SourceItem, context: ExtractionContext) -> ExtractedDocument:
        return self._process.extract(self._extractor, item, context)
