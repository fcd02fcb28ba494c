"""The items of a run: each id once, in the order in which the run takes them, and a look at those to come."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from itertools import islice
from typing import TypeAlias

import apsw

from qedge_dagster.collection.seen import SeenDocuments
from qedge_dagster.errors import QedgeError
from qedge_dagster.pipeline.events import DocumentFailed
from qedge_dagster.pipeline.gauge import Gauge
from qedge_dagster.pipeline.results import DocumentResult
from qedge_dagster.pipeline.stop import Stopped
from qedge_dagster.pipeline.tally import Tally
from qedge_dagster.sources.base import Source, SourceItem, UnlistedPart, check_item
from qedge_dagster.state import StateStore

__all__ = ["Listing"]

_Items: TypeAlias = "Generator[SourceItem | DocumentFailed, None, None]"

# How many items of the source may be asked for before their turn.
_PEEKED = 8


class Listing:
    """One enumeration of a source, read by one run. `unlisted` are the parts that could not be listed."""

    def __init__(self, source: Source, seen: SeenDocuments, tally: Tally) -> None:
        self.unlisted: list[str] = []
        self._source = source
        self._seen = seen
        self._tally = tally
        self._raw: Iterator[SourceItem | UnlistedPart] | None = None
        # Asked for and not yet taken. An error waits for its turn like an item.
        self._peeked: deque[SourceItem | UnlistedPart | Exception] = deque()
        self._ended = False
        self._covered: list[SourceItem] = []
        self._covered_taken = 0

    def items(self) -> _Items:
        """The source's items; what is wrong with the listing itself becomes failures or is noted."""
        try:
            while self._peeked or self._peek():
                item = self._peeked.popleft()
                if isinstance(item, Exception):
                    raise item
                if isinstance(item, UnlistedPart):
                    self.unlisted.append(item.location)
                    self._tally.warnings.append(f"{item.location} could not be listed: {item.reason}")
                    continue
                self._tally.seen += 1
                try:
                    check_item(item)
                    if not self._seen.add(item.document_id):
                        raise QedgeError(6054, f"the source gave {item.document_id!r} more than once")
                except QedgeError as error:
                    failure = error.failure()
                    result = DocumentResult(_printable(item.document_id), "failed", failure=failure)
                    yield DocumentFailed(result, failure, None)
                    continue
                yield item
        except (QedgeError, apsw.Error, Stopped):
            raise
        except Exception as error:
            raise QedgeError(
                6051, f"the listing broke off after {self._tally.seen} documents: {type(error).__name__}"
            ) from error

    def items_from(self, position: str | None, gauge: Gauge, state: StateStore) -> _Items:
        """Start at `position`, where the last run was suspended, and wrap round: so a small budget reaches the end of
        any source.

        What lies before that place, the suspended runs have covered. So if time runs out while it is read again, the
        run is complete nevertheless: else a budget shorter than one reading of everything would never be.
        """
        covered = self._covered
        for item in self.items():
            if position is not None and isinstance(item, SourceItem):
                if item.document_id != position:
                    covered.append(item)
                    continue
                position = None
            yield item
        gone = position is not None
        for number, item in enumerate(covered):
            self._covered_taken = number + 1
            if not gone and gauge.out_of_time():
                self._stop_at_uncovered(covered[number:], gauge, state)
                self._tally.warnings.append(
                    f"{len(covered) - number} documents that the suspended runs before covered were not read again"
                )
                return
            yield item

    def upcoming(self) -> Iterator[SourceItem]:
        """A few of the items that follow the one taken last, as far as they are sound. Nobody can tell that they were
        looked at: what is wrong is said in its turn, and what is counted is counted then."""
        met: set[str] = set()
        for number in range(_PEEKED):
            if number == len(self._peeked) and not self._peek():
                break
            item = self._peeked[number]
            if isinstance(item, SourceItem) and _is_sound(item) and item.document_id not in met:
                met.add(item.document_id)
                if item.document_id not in self._seen:
                    yield item
        if self._ended and len(self._peeked) < _PEEKED:
            yield from islice(self._covered, self._covered_taken, self._covered_taken + _PEEKED)

    def _peek(self) -> bool:
        """Ask the source for one item more; False if there is none."""
        if self._ended:
            return False
        try:
            if self._raw is None:
                self._raw = iter(self._source.items())
            self._peeked.append(next(self._raw))
        except StopIteration:
            self._ended = True
            return False
        except Exception as error:
            self._ended = True
            self._peeked.append(error)
        return True

    def _stop_at_uncovered(self, items: list[SourceItem], gauge: Gauge, state: StateStore) -> None:
        """Suspend at the first item that no run has met yet: the source lists more than it did for the runs before."""
        for item in items:
            if state.document(self._source.source_id, item.document_id) is None:
                gauge.before_document(item.document_id)


def _is_sound(item: SourceItem) -> bool:
    try:
        check_item(item)
    except QedgeError:
        return False
    return True


def _printable(document_id: object) -> str:
    return str(document_id).encode("utf-8", "backslashreplace").decode()
