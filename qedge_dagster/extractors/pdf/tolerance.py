"""Which errors a broken or hostile object may raise: nearly all there are."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from qedge_dagster.errors import QedgeError
from qedge_dagster.extractors.pdf.patience import OutOfTimeError

__all__ = ["OUTRIGHT", "tolerated"]

#: Errors that say more than that an object is broken.
OUTRIGHT = (QedgeError, OutOfTimeError, OSError, MemoryError)


@contextmanager
def tolerated() -> Generator[None]:
    """Leave the block at an error, unless it is one of `OUTRIGHT`: what it would have given is missing then."""
    try:
        yield
    except OUTRIGHT:
        raise
    except Exception:  # noqa: S110 - of any type: KeyError, TypeError, RecursionError, the library's own
        pass
