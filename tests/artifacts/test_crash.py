"""A real process, killed at random instants of writing, switching and discarding."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from mmap import mmap
from pathlib import Path
from typing import Any

import pytest

from qedge_dagster.artifacts import sink
from qedge_dagster.collection.writer import CollectionWriter
from tests.artifacts.support import STAGES, Index
from tests.pipeline.support import prose, write

_PHASES = ("else", "write", "rename", "switch", "discard")
_PAUSE = 0.004


def _child(index: Index, phase: mmap) -> None:
    """A run that pauses where a kill may land."""

    def slow(function: Any, name: str, *, after: bool = False) -> Any:
        def slowed(*arguments: Any, **named: Any) -> Any:
            result = function(*arguments, **named) if after else None
            phase[0] = _PHASES.index(name)
            time.sleep(_PAUSE)
            return result if after else function(*arguments, **named)

        return slowed

    Path.write_bytes = slow(Path.write_bytes, "write")  # type: ignore[method-assign]
    os.replace = slow(os.replace, "rename")
    CollectionWriter.add = slow(CollectionWriter.add, "switch", after=True)  # type: ignore[method-assign]
    sink.discard = slow(sink.discard, "discard")
    index.run()


def storm(root: Path, kills: int, seed: int) -> Counter[str]:
    """Kill, check, prune, check; returns how often each phase was hit."""
    chance = random.Random(seed)
    index, phase, hits = Index(root), mmap(-1, 1), Counter[str]()
    edition = 0
    while sum(hits.values()) < kills:
        edition += 1
        for name in range(5):
            write(index.docs, {f"{name}.txt": "\n\n".join(prose(name, 4) + prose(100 * edition + name, 3))})
        for name in ("x", "y"):
            (index.docs / f"{name}.txt").unlink(missing_ok=True)
        write(index.docs, {"x.txt" if edition % 2 else "y.txt": "the same in every edition"})
        if edition == 1:
            index.run()
            continue
        phase[0] = 0
        process = multiprocessing.get_context("fork").Process(target=_child, args=(index, phase))
        process.start()
        process.join(chance.uniform(0.01, 0.35))
        if process.is_alive():
            os.kill(process.pid or 0, signal.SIGKILL)
            process.join()
            hits[_PHASES[phase[0]]] += 1
        index.check_contents()  # what the state names exists, and is what the collection holds
        with index.open() as pipeline:
            pipeline.prune(index.source)
        assert {stage: index.files(stage) for stage in STAGES} == index.expected()
    index.run()
    index.check()
    return hits


def test_a_kill_at_any_instant_leaves_the_current_artefacts(tmp_path: Path) -> None:
    """After each kill the artefacts of the state's versions are there; a prune leaves no others."""
    assert sum(storm(tmp_path, 15, seed=1).values()) == 15


@pytest.mark.long
def test_two_hundred_kills(tmp_path: Path) -> None:
    """The same, with every phase hit."""
    hits = storm(tmp_path, 200, seed=2)
    print(dict(hits))
    assert set(_PHASES) <= set(hits)
