"""What a run is doing, for whoever watches: a live line on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from qedge_dagster.cli.output import counted, fit, note, printable
from qedge_dagster.collection.integrity import OnProgress, no_progress
from qedge_dagster.pipeline.events import (
    DocumentFailed,
    DocumentIndexed,
    DocumentRemoved,
    DocumentSkipped,
    Event,
    WindowEmbedded,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = ["Progress", "measure", "progress"]

_LIVE_REFRESHES_PER_SECOND = 10
_PLAIN_SECONDS = 10.0


class Progress:
    """Folds a run's events into counts. Never a percentage: the source is streamed, so nobody knows its length."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = clock()
        self.indexed = self.unchanged = self.failed = self.removed = self.tokens = 0
        self.current = ""

    def add(self, event: Event) -> None:
        if isinstance(event, WindowEmbedded):
            self.tokens += event.tokens
            self.current = event.document_id
        elif isinstance(event, DocumentSkipped):
            self.unchanged += 1
            self.current = event.document_id
        elif isinstance(event, DocumentIndexed):
            self.indexed += 1
            self.current = event.result.document_id
        elif isinstance(event, DocumentFailed):
            self.failed += 1
            self.current = event.result.document_id
        elif isinstance(event, DocumentRemoved):
            self.removed += 1
            self.current = event.document_id

    def line(self, width: int) -> str:
        seconds = max(self._clock() - self._started, 1e-9)
        seen = self.indexed + self.unchanged + self.failed
        counts = [f"{self.indexed:,} indexed", f"{self.unchanged:,} unchanged"]
        if self.failed:
            counts.append(f"{self.failed:,} not indexed")
        if self.removed:
            counts.append(f"{self.removed:,} removed")
        rate = f"{seen / seconds:,.1f} documents/s"
        if self.tokens:
            rate += f", {self.tokens / seconds:,.0f} tokens/s"
        text = f"{counted(seen, 'document')} ({', '.join(counts)}) · {rate}"
        room = width - len(text) - 3
        return (
            text if room < 12 or not self.current else f"{text} · {fit(printable(self.current), room, keep_end=True)}"
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield Text(self.line(options.max_width), no_wrap=True, overflow="crop")


@contextmanager
def progress(*, quiet: bool, clock: Callable[[], float] = time.monotonic) -> Generator[Callable[[Event], None]]:
    """The function that takes the run's events."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        shown = Progress(clock)
        # Drawn by rich's own thread: the run only counts, and a long window does not freeze the rate.
        with Live(shown, console=Console(stderr=True), refresh_per_second=_LIVE_REFRESHES_PER_SECOND, transient=True):
            yield shown.add
    else:
        yield _plain(Progress(clock), clock)


def _plain(counts: Progress, clock: Callable[[], float]) -> Callable[[Event], None]:
    due = clock() + _PLAIN_SECONDS

    def add(event: Event) -> None:
        nonlocal due
        counts.add(event)
        if clock() >= due:
            due = clock() + _PLAIN_SECONDS
            note(counts.line(200))

    return add


@contextmanager
def measure(*, quiet: bool) -> Generator[OnProgress]:
    """For work whose extent is known: the function takes what is done, how much of it, and of how much (0: unknown).
    Shown on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield no_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Bars(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=None)
        shown = ""

        def show(what: str, done: int, total: int) -> None:
            nonlocal shown
            if what != shown:
                shown = what
                bars.reset(task, description=printable(what), total=total or None)
            bars.update(task, completed=done, total=total or None)

        yield show
