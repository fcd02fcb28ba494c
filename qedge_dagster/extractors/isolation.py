"""Extraction where it can be killed: a process for the formats whose parsers can hang, crash or eat memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, cast, runtime_checkable

from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.base import ExtractionContext, Extractor
from qedge_dagster.extractors.frames import FrameError, document_from, read_data, read_head, write_frame, write_json
from qedge_dagster.sources.base import SourceItem

__all__ = ["Extraction", "ExtractionLimits", "ExtractionProcess", "Isolated", "IsolatedExtractor", "isolate"]

_PIECE = 1024 * 1024
# Parsers keep caches, and what they leak is given back with the process.
_DOCUMENTS_PER_PROCESS = 200
_DYING_SECONDS = 1.0
# A longer answer stays with the process until it is asked for, so that what was extracted ahead takes little memory.
_KEPT_UNASKED = 8 * 1024 * 1024
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
        #: What was begun last.
        self.latest: Extraction | None = None

    @property
    def busy(self) -> bool:
        return self.latest is not None and not self.latest.done

    def begin(self, extractor: Isolated, item: SourceItem, context: ExtractionContext) -> Extraction:
        """Send a document, whose source is then needed no more, and do not wait for the answer. A document that is not
        done by then is given up. What `item.open` raises passes through."""
        if self.busy or self._documents >= _DOCUMENTS_PER_PROCESS:
            self.close()
        with item.open() as stream:  # before a process is started for nothing
            process = self._started()
            self._documents += 1
            self.latest = extraction = Extraction(process, self._limits)
            try:
                _send(cast("BinaryIO", process.stdin), extractor, item, context, stream)
            except BrokenPipeError:
                pass  # it has died, and the extraction says of what
            except BaseException:  # a document that was sent in part
                self.close()
                raise
        return extraction

    def close(self) -> None:
        """End the process, whatever it is at. Another one is started if it is needed again."""
        if self._process is not None:
            self._end(self._process)

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

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        _kill(process)
        if self.latest is not None:
            self.latest.abandon()  # before the pipe is closed that it reads
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                cast("BinaryIO", stream).close()
        process.wait()
        if self._lifeline >= 0:
            os.close(self._lifeline)
        self._process, self._lifeline = None, -1


class Extraction:
    """A document that the process was given. It is waited for in a thread, so that the answer does not hold up the
    process, and a limit is kept whatever the engine is doing."""

    def __init__(self, process: subprocess.Popen[bytes], limits: ExtractionLimits) -> None:
        self._process = process
        self._limits = limits
        self._answer: dict[str, Any] | None = None
        self._died: int | None = None
        self._late = self._abandoned = False
        self._wanted = threading.Event()
        self._start = time.monotonic()
        #: From its beginning to the answer.
        self.seconds = 0.0
        self._timer = threading.Timer(limits.seconds, self._kill_late)
        self._timer.daemon = True
        self._timer.start()
        self._reader = threading.Thread(target=self._receive, name="qedge-extraction", daemon=True)
        self._reader.start()

    @property
    def done(self) -> bool:
        """Whether the process can take another document."""
        return not self._reader.is_alive()

    def wait(self, seconds: float) -> bool:
        """Wait for at most so long; returns whether it is done."""
        self._wanted.set()
        self._reader.join(seconds)
        return self.done

    def result(self) -> ExtractedDocument:
        """As `extractor.extract`, except that a hang, a crash or a want of memory is `QedgeError` 6102 as well."""
        self._wanted.set()
        self._reader.join()
        answer = self._answer
        if answer is None:
            raise QedgeError(6102, self._why(), remedy=_RAISE if self._late else None)
        if "document" in answer:
            return document_from(answer["document"])
        if "exhausted" in answer:
            message = f"extraction took more than {self._limits.memory >> 20} MiB of memory"
            raise QedgeError(6102, message, remedy=_RAISE)
        raise QedgeError(answer["code"], answer["message"], remedy=answer.get("remedy"))

    def abandon(self) -> None:
        """Nobody wants it any more: if it is not done, the process is killed."""
        if not self.done:
            self._abandoned = True
            _kill(self._process)
            self._wanted.set()
        self._reader.join()

    # in the thread

    def _receive(self) -> None:
        stream, answer = cast("BinaryIO", self._process.stdout), None
        try:
            _, length = read_head(stream)
            self.seconds = time.monotonic() - self._start
            self._timer.cancel()
            if length > _KEPT_UNASKED:
                self._wanted.wait()
            answer = cast("dict[str, Any]", json.loads(read_data(stream, length)))
        except (FrameError, ValueError, OSError):
            self.seconds = time.monotonic() - self._start
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_DYING_SECONDS)  # so that its own exit code is seen, not that of our signal
            self._died = self._process.poll()
        self._timer.cancel()
        self._timer.join()
        if answer is None or "exhausted" in answer or self._late:  # late: killed though it answered at the last moment
            _kill(self._process)
            self._process.wait()
        if not self._abandoned:
            self._answer = answer

    def _kill_late(self) -> None:
        self._late = True
        _kill(self._process)

    def _why(self) -> str:
        if self._abandoned:
            return "the extraction was given up"
        if self._late:
            return f"extraction took longer than {self._limits.seconds:g} s"
        code = self._died
        if code is None:
            return "the process that extracts answered with something that is no answer"
        if code < 0:
            return (
                f"the process that extracts was ended by {signal.Signals(-code).name}: its parser crashed on the file"
            )
        return f"the process that extracts ended with code {code}"


def _send(
    requests: BinaryIO, extractor: Isolated, item: SourceItem, context: ExtractionContext, stream: BinaryIO
) -> None:
    kind, options = type(extractor), dict(extractor.isolated())
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


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)  # with whatever a parser has started
        else:
            process.kill()


def isolate(extractor: Extractor, process: ExtractionProcess) -> Extractor:
    """The same extractor, working in `process` if it asks for that."""
    return IsolatedExtractor(extractor, process) if isinstance(extractor, Isolated) else extractor


class IsolatedExtractor:
    """An extractor whose work is done in a process: at once, or begun and asked for later."""

    def __init__(self, extractor: Isolated, process: ExtractionProcess) -> None:
        self._extractor = extractor
        self._process = process
        self.id, self.version, self.variant = extractor.id, extractor.version, extractor.variant
        self.extensions, self.media_types = extractor.extensions, extractor.media_types
        self.can_extract = extractor.can_extract

    def begin(self, item: SourceItem, context: ExtractionContext) -> Extraction:
        """As `ExtractionProcess.begin`."""
        return self._process.begin(self._extractor, item, context)

    def extract(self, item: SourceItem, context: ExtractionContext) -> ExtractedDocument:
        return self.begin(item, context).result()
