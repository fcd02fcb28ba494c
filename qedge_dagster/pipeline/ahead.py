"""While one document is embedded, the next ones are extracted: by the process that formats such as PDF are isolated in.

That process works by itself once it has been given the bytes, so all it takes is to give them to it early. A source is
read by one thread only, as it was without this, and so is the database.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from qedge_dagster.artifacts.sink import ArtifactSink
from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.extractors.base import Extractor
from qedge_dagster.extractors.isolation import Extraction, IsolatedExtractor
from qedge_dagster.pipeline.fetching import begin_extraction, extract_item, finish_extraction, hash_item
from qedge_dagster.pipeline.gate import Gate
from qedge_dagster.pipeline.gauge import Gauge
from qedge_dagster.pipeline.options import RunOptions
from qedge_dagster.pipeline.stages import Stages
from qedge_dagster.sources.base import SourceItem
from qedge_dagster.state import StateStore

__all__ = ["ExtractionAhead", "ReadAhead"]

_STOP_SECONDS = 0.05  # between two looks at the stop flag


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """What was done of a document before its turn. `extraction` is None where its bytes are known: it is likely to be
    skipped, or its text to be found among the artefacts."""

    item: SourceItem
    source_hash: bytes
    size_bytes: int
    hash_seconds: float
    extraction: Extraction | None


class ExtractionAhead:
    """Extracts documents, in their turn or ahead of it. `upcoming` gives the items that follow the one in turn.

    What goes wrong ahead of a document's turn is not believed, unless the extractor said it: the document is read again
    in its turn, as if nothing had been.
    """

    def __init__(
        self,
        stages: Stages,
        options: RunOptions,
        gate: Gate,
        gauge: Gauge,
        state: StateStore,
        artifacts: ArtifactSink | None,
        source_id: str,
        upcoming: Callable[[], Iterator[SourceItem]],
    ) -> None:
        self._stages = stages
        self._gate = gate
        self._gauge = gauge
        self._state = state
        self._artifacts = artifacts if not options.force else None
        self._source_id = source_id
        self._upcoming = upcoming
        self._limit = 0
        if any(isinstance(extractor, IsolatedExtractor) for extractor in stages.registry):
            self._limit = stages.documents_ahead
        self._ready: list[ReadAhead] = []
        self._tried: set[str] = set()  # with those that could not be read

    def advance(self) -> None:
        """Keep the process busy with what comes next, as far as that may be. To be called often: it never waits."""
        while len(self._tried) < self._limit and not self._stages.extraction.busy:
            read = self._read_next()
            if read is None:
                return
            self._ready.append(read)

    def take(self, item: SourceItem) -> ReadAhead | None:
        """What was done of the document whose turn it is."""
        self._tried.discard(item.document_id)
        for number, read in enumerate(self._ready):
            if read.item is item:
                return self._ready.pop(number)
        return None

    def extract(self, item: SourceItem, extractor: Extractor, source_hash: bytes) -> ExtractedDocument:
        """Extract a document in its turn. Raises as `fetching.extract_item`, and `Stopped`."""
        if not isinstance(extractor, IsolatedExtractor):
            return extract_item(item, extractor, source_hash, self._stages.options)
        if (other := self._stages.extraction.latest) is not None:
            self._wait(other)
        return self.finish(begin_extraction(item, extractor, source_hash, self._stages.options))

    def finish(self, extraction: Extraction) -> ExtractedDocument:
        """The document, which is waited for. Raises as `extract`."""
        self._wait(extraction)
        return finish_extraction(extraction)

    def _wait(self, extraction: Extraction) -> None:
        while not extraction.wait(_STOP_SECONDS):
            self._gauge.check_stop()

    def _read_next(self) -> ReadAhead | None:
        for item in self._upcoming():
            if item.document_id in self._tried:
                continue
            try:
                before = self._state.document(self._source_id, item.document_id)
                standing = self._gate.standing(item, before)
                if not isinstance(standing.extractor, IsolatedExtractor) or standing.trusted is not None:
                    continue
                known = {before.content_hash} if before is not None and standing.may_skip else set[bytes | None]()
                if self._artifacts is not None:
                    known.add(self._artifacts.source_hash(self._source_id, item.document_id))
                self._tried.add(item.document_id)
                return self._read(item, standing.extractor, known)
            except Exception:  # noqa: S112 - whatever it is, it is met again in its turn, and said then
                continue
        return None

    def _read(self, item: SourceItem, extractor: IsolatedExtractor, known: set[bytes | None]) -> ReadAhead:
        start = time.perf_counter()
        source_hash, size = hash_item(item, self._stages.options, self._gauge.check_stop)
        seconds = time.perf_counter() - start
        extraction = None
        if source_hash not in known:
            extraction = begin_extraction(item, extractor, source_hash, self._stages.options)
        return ReadAhead(item, source_hash, size, seconds, extraction)
