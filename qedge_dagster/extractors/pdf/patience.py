"""How long one page may take."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["OutOfTimeError", "Patience"]

_LOOK = 1024  # operators between two looks at the clock


class OutOfTimeError(Exception):
    """The page is not to be read to its end."""


class Patience:
    """Called with each operator of a page's content, it raises `OutOfTimeError` when the time is over."""

    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._operators = 0
        self._start = 0.0

    def begin(self) -> None:
        self._start = self._clock()

    def was_exceeded(self) -> bool:
        """Whether the page took too long. The next one begins."""
        before, self._start = self._start, self._clock()
        return self._start - before > self._seconds

    def __call__(self) -> None:
        self._operators += 1
        if not self._operators % _LOOK and self._clock() - self._start > self._seconds:
            raise OutOfTimeError
