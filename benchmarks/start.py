"""How long a command takes from the start of its process to its first line, beside one that only imports what it cannot
do without, and prints nothing.

By the clock on the wall, as that is what one waits for; a line below each, the CPU time of both up to their ends. Both
find the modules compiled, as the first round is not counted, and as they are where a package is installed.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.figures import Figure, Scale, Target
from qedge_dagster import FolderSource, IngestionPipeline

_ROOT = Path(__file__).parents[1]
_DOCUMENTS = _ROOT / "examples" / "docs"
_QEDGE = "from qedge_dagster.cli import main; main()"


class Start(NamedTuple):
    """Milliseconds: of the clock to the first line of output, or to the end where there is none, and of CPU."""

    answered: float
    processor: float


def measure(scale: Scale) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder, "documents.db")
        with IngestionPipeline.open(database) as pipeline:
            pipeline.run(FolderSource(_DOCUMENTS))
        search = ("search", "--db", str(database), "--top", "1", "How often is the sand filter changed?")
        status = ("status", "--db", str(database))
        python = partial(command, Path(folder, "compiled"))
        for name, arguments, imports, bound in (
            ("qedge search", search, "import onnxruntime, tokenizers", 2.5),
            ("qedge status", status, "import apsw", 3),
        ):
            contenders = python(_QEDGE, *arguments), python(imports)
            yield from figures(name, contenders, imports, Target("at most", bound), scale.rounds)


def figures(
    name: str, contenders: Sequence[Callable[[], Start]], imports: str, target: Target, rounds: int
) -> Iterator[Figure]:
    samples = [[contender() for contender in contenders] for _ in range(rounds + 1)][1:]
    ours, limit = (Start(*map(statistics.median, zip(*starts, strict=True))) for starts in zip(*samples, strict=True))
    yield Figure(f"Start: {name}", ours.answered, "ms", limit.answered, imports, target)
    yield Figure(f"Start: {name}, CPU to its end", ours.processor, "ms of CPU", limit.processor, imports)


def command(compiled: Path, code: str, *arguments: str) -> Callable[[], Start]:
    """A process of Python that runs `code` and keeps compiled modules in a folder. Raises `CalledProcessError` where it
    fails."""
    environment = {**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONPYCACHEPREFIX": str(compiled)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    words = [sys.executable, "-c", code, *arguments]

    def start() -> Start:
        began, used = time.perf_counter(), _processor_of_children()
        with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as process:  # noqa: S603 - our own
            assert process.stdout is not None
            process.stdout.readline()
            answered = time.perf_counter() - began
            process.stdout.read()
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, words)
        return Start(1000 * answered, 1000 * (_processor_of_children() - used))

    return start


def _processor_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
