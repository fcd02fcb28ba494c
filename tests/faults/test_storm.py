"""A fault at every point where an ingest of changed documents touches its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from qedge_dagster import FolderSource, IngestionPipeline, QedgeError
from tests.faults.support import OPTIONS, Rows, Scene, by_document, copy_database, run
from tests.faults.vfs import FULL, IOERR, OK, SHORT, Kind, faulty_files
from tests.pipeline.support import CountingEmbedder, check_integrity, contents

_CODES: dict[str, int] = {"I/O error": IOERR, "disk full": FULL, "short write": SHORT}
_ONLY_WRITES = ("disk full", "short write")


class Storm:
    """Counts what was tried, and what came of it."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self.tried: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self._scene = scene
        self._database = folder / "index.db"
        self._before = by_document(scene.references[0])
        self._after = by_document(scene.references[1])

    def points(self) -> list[Kind]:
        """The kind of each operation of a run without a fault."""
        kinds: list[Kind] = []

        def note(_number: int, kind: Kind) -> int:
            kinds.append(kind)
            return OK

        copy_database(self._scene.references[0], self._database)
        with faulty_files(note):
            run(self._database, self._scene.folders[1])
        return kinds

    def strike(self, point: int, kind: Kind, what: str, *, lasting: bool) -> None:
        """Run with the fault at one point, or from there on; look at what is left; run again without it."""
        database = copy_database(self._scene.references[0], self._database)
        self.tried[f"{what} at {kind}{', lasting' if lasting else ''}"] += 1
        with faulty_files(_fault(point, what, lasting=lasting)):
            end = self._end(database)
        self.ends[end] += 1
        at = f"point {point}, {what} at {kind}, lasting: {lasting}, end: {end}"
        check_integrity(database)
        found = by_document(database)
        assert _whole(found, self._before, self._after), at
        assert "6204" not in end, at  # the file is sound: nobody should be told to delete it
        if end == "completed":
            assert found == self._after, at
        assert run(database, self._scene.folders[1]).outcome == "completed", at
        assert contents(database) == contents(self._scene.references[1]), at

    def _end(self, database: Path) -> str:
        """How the run told of the fault: anything but a code, or success, breaks the test."""
        try:
            result = run(database, self._scene.folders[1])
        except QedgeError as error:
            return f"raised {error.code}"
        if result.outcome == "completed":
            codes = sorted({document.failure.code for document in result.documents if document.failure})
            return f"completed with {codes}" if codes else "completed"
        assert result.failure is not None
        return f"{result.outcome} {result.failure.code}"


def _fault(point: int, what: str, *, lasting: bool) -> Callable[[int, Kind], int]:
    code = _CODES[what]

    def fault(number: int, kind: Kind) -> int:
        if number < point or (number > point and not lasting):
            return OK
        if what in _ONLY_WRITES and kind != "write":
            return OK
        return FULL if code == SHORT and number > point else code

    return fault


def _whole(found: Rows, *editions: Rows) -> bool:
    ids = set(found).union(*editions)
    return all(any(found.get(name) == edition.get(name) for edition in editions) for name in ids)


def storm(folder: Path, step: int) -> Storm:
    scene = Scene.make(folder, 2)
    storm = Storm(scene, folder)
    for number, kind in enumerate(storm.points()):
        for turn, what in enumerate(_CODES):
            for lasting in (False, True):
                if what in _ONLY_WRITES and kind != "write":
                    continue
                # Another step for each kind of fault, so that a short form does not try all of them at the same points.
                if (number + 2 * turn + lasting) % step == 0:
                    storm.strike(number + 1, kind, what, lasting=lasting)
    print(f"\n{storm.tried.total()} faults: {dict(storm.tried)}\nends: {dict(storm.ends)}")
    return storm


def test_a_fault_at_some_points_is_told_by_its_code(tmp_path: Path) -> None:
    """After a fault no document is half there, the run has said so, and the next one ends as if nothing had been."""
    assert storm(tmp_path, step=17).tried.total() > 40


def test_a_pipeline_that_met_a_fault_is_to_be_opened_again(tmp_path: Path) -> None:
    """Its connection is refused with 6205, since FTS5 would write on with what it had before the rollback."""
    scene = Scene.make(tmp_path, 2)
    storm = Storm(scene, tmp_path)
    database, refused = tmp_path / "index.db", 0
    for point, kind in enumerate(storm.points(), start=1):
        if kind != "read" or point % 4:
            continue
        copy_database(scene.references[0], database)
        with (
            faulty_files(_fault(point, "I/O error", lasting=False)),
            suppress(QedgeError),
            IngestionPipeline.open(database, embedder=CountingEmbedder(), options=OPTIONS) as pipeline,
        ):
            failed = pipeline.run(FolderSource(scene.folders[1], source_id="s")).outcome == "failed"
            refused += failed
            with pytest.raises(QedgeError, match="ended with a fault") if failed else nullcontext():
                pipeline.run(FolderSource(scene.folders[1], source_id="s"))
        check_integrity(database)
        assert run(database, scene.folders[1]).outcome == "completed"
        assert contents(database) == contents(scene.references[1])
    assert refused > 0


@pytest.mark.long
def test_a_fault_at_every_point_is_told_by_its_code(tmp_path: Path) -> None:
    """The same at all of them."""
    assert storm(tmp_path, step=1).tried.total() > 1000
