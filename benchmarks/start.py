"""How long a command takes from the start of its process, beside one that only imports what it cannot do without.

By the clock on the wall, as that is what one waits for; a line below each, the CPU time of the same. Both find the
modules compiled, as the first round is not counted, and as they are where a package is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.figures import Figure, Scale, Target, processor_of_children, wall
from qedge_dagster import FolderSource, IngestionPipeline

_ROOT = Path(__file__).parents[1]
_DOCUMENTS = _ROOT / "examples" / "docs"
_QEDGE = "from qedge_dagster.cli import main; main()"


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
    name: str, contenders: Sequence[Callable[[], object]], imports: str, target: Target, rounds: int
) -> Iterator[Figure]:
    ours, limit = (1000 * seconds for seconds in wall(contenders, rounds))
    yield Figure(f"Start: {name}", ours, "ms", limit, imports, target)
    ours, limit = (1000 * seconds for seconds in processor_of_children(contenders, rounds))
    yield Figure(f"Start: {name}, CPU", ours, "ms of CPU", limit, imports)


def command(compiled: Path, code: str, *arguments: str) -> Callable[[], object]:
    """A process of Python that runs `code` and keeps compiled modules in a folder. Raises `CalledProcessError` where it
    fails."""
    environment = {**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONPYCACHEPREFIX": str(compiled)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return partial(
        subprocess.run, [sys.executable, "-c", code, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment
    )
