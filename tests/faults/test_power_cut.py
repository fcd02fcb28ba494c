"""The power goes at every point of an ingest; what the disk may hold then is opened again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from qedge_dagster.collection.connection import Database, Synchronous
from qedge_dagster.pipeline.events import DocumentIndexed, DocumentRemoved, Event
from tests.faults.disk import Disk
from tests.faults.support import Rows, Scene, by_document, copy_database, run
from tests.faults.vfs import Operation, faulty_files
from tests.pipeline.support import check_integrity, contents

_TORN_PER_POINT = 2


class Recording:
    """Runs one after another on one database, each over another edition of the folder: all that they did to files, and
    after which operation which state of the collection was known to be committed."""

    def __init__(self, scene: Scene, folder: Path, synchronous: Synchronous, *, fresh: bool) -> None:
        self.before: dict[str, bytes] = {}
        database = folder / f"recorded-{synchronous}-{fresh}.db"
        rows: Rows = {}
        if not fresh:
            copy_database(scene.references[0], database)
            self.before[database.name] = database.read_bytes()
            rows = by_document(scene.references[0])
        self.name = database.name
        #: Each state in the order of commits, and how many operations there were when it was reported.
        self.states: list[tuple[int, Rows]] = [(0, rows)]
        editions = [(docs, by_document(path)) for docs, path in zip(scene.folders, scene.references, strict=True)]
        with faulty_files(record=True) as files:
            for docs, edition in editions[not fresh :]:
                self._follow(files.operations, database, docs, edition, synchronous)
        self.operations = files.operations
        assert self.states[-1][1] == by_document(scene.references[-1])

    def _follow(
        self, done: list[Operation], database: Path, docs: Path, edition: Rows, synchronous: Synchronous
    ) -> None:
        def follow(event: Event) -> None:
            rows = dict(self.states[-1][1])
            if isinstance(event, DocumentIndexed):
                rows[event.result.document_id] = edition[event.result.document_id]
            elif isinstance(event, DocumentRemoved):
                del rows[event.document_id]
            else:
                return
            self.states.append((len(done), rows))

        assert run(database, docs, synchronous=synchronous, on_event=follow).outcome == "completed"

    def reported(self, point: int) -> int:
        """Which of the states had been reported before the operation of that number."""
        return max(number for number, (done, _) in enumerate(self.states) if done <= point)


class Cuts:
    def __init__(self, scene: Scene, folder: Path) -> None:
        self.points: Counter[str] = Counter()
        self.disks: Counter[str] = Counter()
        self.lost: Counter[int] = Counter()
        self._scene = scene
        self._folder = folder / "after"
        self._folder.mkdir()

    def cut(self, recording: Recording, synchronous: Synchronous, step: int) -> None:
        """Before the first operation, and after every `step`th."""
        chance = Random(recording.name)
        disk, seen = Disk(recording.before), set[int]()
        for point in range(len(recording.operations) + 1):
            if point:
                disk.apply(recording.operations[point - 1])
            if point % step:
                continue
            for what, files in (
                ("worst", disk.worst()),
                *(("torn", disk.torn(chance)) for _ in range(_TORN_PER_POINT)),
            ):
                self.points[f"{what} {synchronous}"] += 1
                digest = hash((recording.reported(point), *sorted(files.items())))
                if digest not in seen:  # most writes change nothing that is synced
                    seen.add(digest)
                    self.disks[f"{what} {synchronous}"] += 1
                    self._look(recording, point, files, synchronous)

    def _look(self, recording: Recording, point: int, files: dict[str, bytes], synchronous: Synchronous) -> None:
        for path in self._folder.iterdir():
            path.unlink()
        for name, data in files.items():
            (self._folder / name).write_bytes(data)
        database = self._folder / recording.name
        found: Rows = {}
        if _holds_collection(database):
            check_integrity(database)
            found = by_document(database)
        kept = [number for number, (_, rows) in enumerate(recording.states) if rows == found]
        assert kept, f"point {point}: a state that was never committed"
        lost = max(0, recording.reported(point) - max(kept))
        self.lost[lost] += 1
        if synchronous == "full":
            assert lost == 0, f"point {point}"
        assert run(database, self._scene.folders[-1]).outcome == "completed", point
        assert contents(database) == contents(self._scene.references[-1]), point


def _holds_collection(database: Path) -> bool:
    if not database.exists():
        return False
    opened = Database(database)
    try:
        return opened.connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'chunks'").get is not None
    finally:
        opened.close()


def cut_everywhere(folder: Path, step: int) -> Cuts:
    scene = Scene.make(folder, 3)
    cuts = Cuts(scene, folder)
    for synchronous in ("normal", "full"):
        for fresh in (False, True):
            cuts.cut(Recording(scene, folder, synchronous, fresh=fresh), synchronous, step)
    print(f"\n{cuts.points.total()} cuts {dict(cuts.points)}: {cuts.disks.total()} different disks {dict(cuts.disks)}")
    print(f"reported documents that were lost: {dict(cuts.lost)}")
    return cuts


def test_a_power_cut_at_some_points_leaves_whole_documents(tmp_path: Path) -> None:
    """The index is as after some commit; with `full`, after the last that was reported. The next run ends as if nothing
    had been."""
    assert cut_everywhere(tmp_path, step=41).disks.total() > 40


@pytest.mark.long
def test_a_power_cut_at_every_point_leaves_whole_documents(tmp_path: Path) -> None:
    """The same at all of them."""
    cuts = cut_everywhere(tmp_path, step=1)
    assert cuts.disks.total() > 400
    assert max(cuts.lost) > 0  # the model does lose what is not synced
