"""How long a command takes from the start of its process, beside one that only imports what it cannot do without.

By the clock on the wall, as that is what one waits for; a line below each, the CPU time of the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.figures import Figure, Scale, Target, processor_of_children, wall
from qedge_dagster import FolderSource, IngestionPipeline

_DOCUMENTS = Path(__file__).parents[1] / "examples" / "docs"


def measure(scale: Scale) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder, "documents.db")
        with IngestionPipeline.open(database) as pipeline:
            pipeline.run(FolderSource(_DOCUMENTS))
        search = ("search", "--db", str(database), "--top", "1", "How often is the sand filter changed?")
        status = ("status", "--db", str(database))
        yield from _against("qedge search", search, "import onnxruntime, tokenizers", 2.5, scale.rounds)
        yield from _against("qedge status", status, "import apsw", 3, scale.rounds)


def _against(name: str, arguments: tuple[str, ...], imports: str, bound: float, rounds: int) -> Iterator[Figure]:
    contenders = command("-m", "qedge_dagster.cli", *arguments), command("-c", imports)
    target = Target("at most", bound)
    ours, limit = (1000 * seconds for seconds in wall(contenders, rounds))
    yield Figure(f"Start: {name}", ours, "ms", limit, imports, target)
    ours, limit = (1000 * seconds for seconds in processor_of_children(contenders, rounds))
    yield Figure(f"Start: {name}, CPU", ours, "ms of CPU", limit, imports)


def command(*arguments: str) -> Callable[[], object]:
    """Python with these arguments. Raises `CalledProcessError` where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    return partial(
        subprocess.run,
        [sys.executable, *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        env=environment,
    )
