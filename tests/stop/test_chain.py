"""SIGTERM in each phase of a run with the default model: by the engine alone, as a run of Dagster, and in Dagster's run
worker. What a stop took, from where the signal is sent, is printed (`-s`) and not asserted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM

import dagster as dg
import pytest
from dagster._grpc.types import ExecuteRunArgs

from qedge_dagster.collection.connection import Database
from qedge_dagster.orchestration.home import prepare_home
from qedge_dagster.state import StateStore
from tests.pipeline.support import check_integrity, contents
from tests.stop import scene, worker
from tests.stop.marked import Mark, read_marks

ROOT = Path(__file__).parents[2]
_ATTEMPTS = 5
_HOW = ("alone", "dagster", "worker")
#: When a second SIGTERM comes; `gone` is when the engine has done all, and its process is on the way to its end.
_AGAIN = (None, "merge", "checkpoint", "gone")


@dataclass(frozen=True)
class Scene:
    """A folder with documents `docs` and database `x.db`, one document of which is new."""

    root: Path

    @property
    def database(self) -> Path:
        return self.root / "x.db"

    @property
    def marks(self) -> Path:
        return self.root / "marks"

    def copy(self, root: Path) -> Scene:
        shutil.copytree(self.root, root)
        return Scene(root)

    def start(self, how: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "QEDGE_TEST_MARKS": str(self.marks)}
        environment.pop("DAGSTER_HOME", None)
        command = [sys.executable, "-m", "tests.stop.marked", "ingest", str(self.root / "docs")]
        command += ["--source-id", scene.SOURCE, "--db", str(self.database), "--fts-tokenizer", scene.FTS_TOKENIZER]
        command += ["--json"]
        if how == "alone":
            command.append("--no-dagster")
        if how == "worker":
            environment["QEDGE_TEST_ROOT"] = str(self.root)
            command = self._launch()
        with (self.root / "result").open("wb") as result, (self.root / "messages").open("wb") as messages:
            return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=result, stderr=messages)

    def finish(self, how: str) -> int:
        with self.start(how) as process:
            return process.wait(300)

    def _launch(self) -> list[str]:
        """A run that Dagster has created, and the command by which its launchers have a process execute it."""
        with pytest.MonkeyPatch.context() as patch, self.instance() as instance:
            patch.setenv("QEDGE_TEST_ROOT", str(self.root))
            job = dg.reconstructable(worker.ingest_job)
            origin = job.get_python_origin()
            run = instance.create_run_for_job(job.get_definition(), job_code_origin=origin)
            _, *arguments = ExecuteRunArgs(origin, run.run_id, instance.get_ref()).get_command_args()
        return [sys.executable, "-m", "dagster", *arguments]

    def instance(self) -> dg.DagsterInstance:
        home = self.root / "home"
        prepare_home(home)
        return dg.DagsterInstance.from_config(str(home))

    def texts_embedded(self) -> int:
        """By the newest `qedge ingest`."""
        return json.loads((self.root / "result").read_text())["texts_embedded"]

    def last_run(self) -> tuple[dg.DagsterRunStatus, str | None]:
        with self.instance() as instance:
            run = instance.get_runs(limit=1)[0]
            return run.status, run.tags.get("qedge/outcome")

    def recorded_steps(self) -> dict[str, float]:
        with closing(Database(self.database, read_only=True)) as opened:
            return StateStore(opened, "chunks").stop()


@dataclass(frozen=True)
class Stop:
    """What a stopped process left. Times are of the monotonic clock."""

    scene: Scene
    code: int
    sent: list[float]
    ended: float
    marks: list[Mark]

    def found(self) -> list[str | None]:
        """The phase that each signal came in."""
        return [_phase_after([mark for mark in self.marks if mark.at <= at][-1]) for at in self.sent]

    def end_of(self, phase: str) -> float:
        return max(mark.at for mark in self.marks if mark.phase == phase and not mark.begins)


def _phase_after(mark: Mark) -> str | None:
    """None between phases. The hashing of unchanged documents is a loop, each other phase is a call."""
    if mark.begins or mark.phase == "hash":
        return mark.phase
    return "gone" if mark.phase == "winding" else None


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    root = tmp_path_factory.mktemp("base")
    scene.build(root)
    return Scene(root)


@pytest.fixture(scope="module", params=scene.PHASES)
def phase(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def before(phase: str, base: Scene, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """The index, and the new document of a phase."""
    made = base.copy(tmp_path_factory.mktemp(phase) / "before")
    scene.PHASES[phase][0](made.root / "docs")
    return made


@pytest.fixture(scope="module")
def after(before: Scene) -> Scene:
    """The same, after a run that nobody stops."""
    made = before.copy(before.root.with_name("after"))
    assert made.finish("alone") == 0
    return made


@pytest.fixture(scope="module")
def table() -> Iterator[list[str]]:
    rows: list[str] = []
    yield rows
    print("\nseconds from the first SIGTERM to …", *rows, sep="\n")


@pytest.mark.long
@pytest.mark.parametrize("how", _HOW)
@pytest.mark.parametrize("again", _AGAIN, ids=lambda again: again or "once")
def test_sigterm(
    phase: str, again: str | None, how: str, before: Scene, after: Scene, table: list[str], tmp_path: Path
) -> None:
    """Cancelled, each document as it was or as it is to be, no WAL; the next run makes the rows that an undisturbed one
    makes, and embeds nothing twice. A second SIGTERM changes nothing."""
    wanted = [(phase, scene.PHASES[phase][1]), *([(again, 1)] if again else [])]
    stopped = _stop(before, tmp_path, how, wanted)
    left = stopped.scene
    table.append(line := _line(stopped, how))
    print(f"\n{line}")
    if how == "worker":
        assert left.last_run() == (dg.DagsterRunStatus.CANCELED, "cancelled")
    else:
        assert stopped.code == 130
    texts = left.texts_embedded() if how != "worker" else None
    log = left.database.with_name("x.db-wal")
    assert not log.exists() or log.stat().st_size == 0
    steps = left.recorded_steps()
    assert list(steps) == ["boundary", "merge", "checkpoint"]
    assert min(steps.values()) >= 0
    assert sum(steps.values()) <= stopped.end_of("winding") - stopped.sent[0]
    check_integrity(left.database)
    old, new = scene.by_document(before.database), scene.by_document(after.database)
    assert all(rows in (old.get(name), new[name]) for name, rows in scene.by_document(left.database).items())
    assert left.finish(how) == 0
    if texts is not None:
        assert texts + left.texts_embedded() == after.texts_embedded()
    check_integrity(left.database)
    assert contents(left.database) == contents(after.database)


def _line(stopped: Stop, how: str) -> str:
    """What the stop took, in seconds, as a row."""
    first, steps = stopped.sent[0], stopped.scene.recorded_steps()
    boundary = next(mark.at for mark in stopped.marks if mark.phase == "winding")
    found = " + ".join(map(str, stopped.found()))
    return (
        f"{found:22} {how:8} boundary {boundary - first:6.3f} (recorded {steps['boundary']:6.3f})"
        f"  merged {stopped.end_of('merge') - first:6.3f}  WAL empty {stopped.end_of('checkpoint') - first:6.3f}"
        f"  process gone {stopped.ended - first:6.3f}  exit code {stopped.code}  load {os.getloadavg()[0]:.1f}"
    )


def _stop(before: Scene, root: Path, how: str, wanted: list[tuple[str, int]]) -> Stop:
    """Send SIGTERM in the how-maniest of each wanted phase. Where a phase was over before the signal came, the run is
    made anew."""
    found: list[list[str | None]] = []
    for attempt in range(_ATTEMPTS):
        stopped = _stop_once(before.copy(root / f"{attempt}"), how, wanted)
        found.append(stopped.found())
        if found[-1] == [phase for phase, _ in wanted]:
            return stopped
    raise AssertionError(f"{wanted} was never met, but {found}: {(root / '0' / 'messages').read_text()}")


def _stop_once(copy: Scene, how: str, wanted: list[tuple[str, int]]) -> Stop:
    sent: list[float] = []
    with copy.start(how) as process:
        try:
            for phase, number in wanted:
                while [_phase_after(mark) for mark in read_marks(copy.marks)].count(phase) < number:
                    if process.poll() is not None:
                        break
                    time.sleep(0.001)
                else:
                    sent.append(time.monotonic())
                    os.kill(process.pid, SIGTERM)
            code = process.wait(120)
        finally:
            process.kill()
    return Stop(copy, code, sent, time.monotonic(), read_marks(copy.marks))
