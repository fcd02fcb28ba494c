"""What a benchmark finds, and how it is shown."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured: `rounds` of which the median is taken, and the full sizes or those of minutes."""

    rounds: int = 5
    full: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked of the ratio to the limit, or of the figure itself where it has no limit."""

    bound: Literal["at most", "at least"]
    value: float

    def met_by(self, figure: float) -> bool:
        return figure <= self.value if self.bound == "at most" else figure >= self.value


@dataclass(frozen=True, slots=True)
class Figure:
    """`ours` beside `limit`, both in `unit` and measured in the same run; `against` says what the limit is.

    A figure without a target explains another one.
    """

    name: str
    ours: float
    unit: str
    limit: float | None = None
    against: str = ""
    target: Target | None = None

    @property
    def ratio(self) -> float | None:
        return self.ours / self.limit if self.limit else None

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        ratio = self.ratio
        return self.target.met_by(self.ours if ratio is None else ratio)

    def facts(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio, "met": self.met}


def line(figure: Figure) -> str:
    """A row of the table."""
    limit = "" if figure.limit is None else f"{figure.limit:,.4g}"
    ratio = "" if figure.ratio is None else f"{figure.ratio:.3g}"
    target = "" if figure.target is None else f"{figure.target.bound} {figure.target.value:g}"
    verdict = {True: "met", False: "MISSED", None: ""}[figure.met]
    return (
        f"{figure.name:52} {figure.ours:>10,.4g} {limit:>10} {figure.unit:12} {ratio:>7}  {target:14} {verdict:7}"
        f"{figure.against}"
    ).rstrip()


def medians(contenders: Sequence[Callable[[], object]], rounds: int, clock: Callable[[], float]) -> list[float]:
    """Of the time that each takes by the clock; they take turns, after one round that is not counted."""
    samples: list[list[float]] = [[] for _ in contenders]
    for _ in range(rounds + 1):
        for contender, sample in zip(contenders, samples, strict=True):
            start = clock()
            contender()
            sample.append(clock() - start)
    return [statistics.median(sample[1:]) for sample in samples]


def wall(contenders: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Medians in seconds of the clock on the wall."""
    return medians(contenders, rounds, time.perf_counter)


def processor(contenders: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Medians in seconds of this process' CPU."""
    return medians(contenders, rounds, time.process_time)
