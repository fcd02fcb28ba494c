"""Looking a database over, and mending what can be mended without the sources."""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import apsw
from filelock import FileLock, Timeout

from qedge_dagster.artifacts.files import ArtifactFolder, discard
from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.findings import Finding
from qedge_dagster.collection.gathering import gather_vectors
from qedge_dagster.collection.integrity import OnProgress, check_collection, check_pages, no_progress
from qedge_dagster.collection.repair import mend_collection, rebuild_indexes
from qedge_dagster.collection.schema import check_file, list_collections, read_spec
from qedge_dagster.collection.snapshot import read_errors
from qedge_dagster.collection.state_integrity import known_sources, names_without_tables
from qedge_dagster.errors import QedgeError
from qedge_dagster.pipeline.document import utc_now
from qedge_dagster.pipeline.lock import is_locked, lock_path, run_lock
from qedge_dagster.pipeline.rebuild import SUFFIX
from qedge_dagster.state import StateStore

__all__ = ["Diagnosis", "examine", "mend"]

_EXAMPLES = 5
# What is found behind damage that is mended first, such as an index out of step, needs another look.
_ROUNDS = 3
# A lock file is opened, then locked: one that nobody has opened for so long is in nobody's hands between the two.
_LOCK_IDLE_SECONDS = 3_600


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`found` is what was wrong, `done` what a repair did about it, `left` what is still wrong. `notes` are no
    faults: what is under way, and what could not be looked at."""

    database: Path
    collections: tuple[str, ...]
    found: tuple[Finding, ...]
    done: tuple[str, ...]
    left: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        return not self.left

    def as_dict(self) -> dict[str, object]:
        return {
            "database": str(self.database),
            "collections": list(self.collections),
            "healthy": self.healthy,
            "found": [finding.as_dict() for finding in self.found],
            "done": list(self.done),
            "left": [finding.as_dict() for finding in self.left],
            "notes": list(self.notes),
        }


def examine(
    path: Path | str,
    collection: str | None = None,
    *,
    quick: bool = False,
    artifacts: Path | None = None,
    on_progress: OnProgress | None = None,
) -> Diagnosis:
    """Look over every collection of a database, or one; `artifacts` is the folder of their stage artefacts.

    Writes nothing, takes no lock that a run could wait for, and reads what is committed. `quick` reads neither texts
    nor vectors. Raises `QedgeError` 6002 if there is no such database or collection, 6201, 6202 or 6203 if this
    release cannot read it, 6204 if it is no database at all.
    """
    with closing(Database(path, read_only=True)) as database, _interruptible(database):
        return _Patient(database, collection, artifacts, on_progress).look(quick=quick)


def mend(
    path: Path | str,
    collection: str | None = None,
    *,
    artifacts: Path | None = None,
    on_progress: OnProgress | None = None,
) -> Diagnosis:
    """Look over, mend what can be mended from the file itself, and look again.

    Holds the run locks of all sources. Each collection is mended in one transaction; what is lost, the next run of
    its source indexes again. Raises as `examine` does, 6008 if a run is active, 6205 if the file cannot be written.
    """
    if not Path(path).is_file():
        raise QedgeError(6002, f"there is no database at {path}")
    with closing(Database(path)) as database, _interruptible(database):
        patient = _Patient(database, collection, artifacts, on_progress)
        if database.connection.readonly("main"):
            raise QedgeError(6205, f"{path} is read-only", remedy="mend a copy that may be written")
        try:
            with patient.locked():
                before = after = patient.look()
                done: list[str] = []
                for _ in range(_ROUNDS):
                    if not any(finding.mendable for finding in after.left):
                        break
                    done += patient.treat(after.left)
                    after = patient.look()
                if after.healthy:
                    done += patient.gather_vectors()
        except apsw.CorruptError as error:
            raise QedgeError(6204, f"{path} is damaged: {error}") from error
        except UnicodeDecodeError as error:
            raise QedgeError(6204, f"{path} is damaged: an id or a key is no UTF-8") from error
        except apsw.Error as error:
            raise QedgeError(6205, f"{path}: {error}") from error
    return Diagnosis(before.database, before.collections, before.found, tuple(done), after.left, after.notes)


@contextmanager
def _interruptible(database: Database) -> Generator[None]:
    """Let Ctrl-C end a statement that takes long: Python sees a signal only when SQLite calls it."""
    database.connection.set_progress_handler(lambda: False, 1_000_000)
    try:
        yield
    finally:
        database.connection.set_progress_handler(None)


class _Patient:
    def __init__(
        self, database: Database, collection: str | None, artifacts: Path | None, on_progress: OnProgress | None
    ) -> None:
        self._database = database
        self._connection = database.connection
        self._artifacts = artifacts
        self._report: OnProgress = on_progress or no_progress
        with read_errors(database.path):
            known = check_file(database)
            names = list_collections(database)
        if collection is not None:
            if collection not in names:
                read_spec(database, collection)  # says better what is wrong, if something of that name is there
                raise QedgeError(6002, f"{database.path} holds no collection {collection}")
            names = [name for name in names if name in (collection, collection + SUFFIX)]
        if names and not known:
            raise QedgeError(6201, f"{database.path} has tables of a collection, but holds no ingestion state")
        if not known:
            raise QedgeError(6002, f"{database.path} holds no collection")
        self._names = names
        self._whole_file = collection is None
        self._holds_locks = False

    # looking

    def look(self, *, quick: bool = False) -> Diagnosis:
        self._report("the file", 0, 0)
        found = check_pages(self._database, quick=quick)
        notes: list[str] = []
        # What is read from damaged pages, or through an index that is out of step, says nothing.
        if not any(finding.kind in ("file_damaged", "index_damaged") for finding in found):
            try:
                for name in self._names:
                    known = {finding.kind for finding in found if finding.collection == name}
                    more = check_collection(self._database, name, quick=quick, on_progress=self._report)
                    found += [f for f in more if not (known and f.kind.startswith("full_text"))]
                found += self._outside(quick)
                notes += self._notes()
            except QedgeError as error:
                if error.code != 6204:
                    raise
                found.append(Finding("file_damaged", detail=error.message))
            except UnicodeDecodeError:
                found.append(Finding("file_damaged", detail="an id or a key is no UTF-8"))
        if quick:
            notes.append("texts, vectors and the full-text index were not read (quick)")
        return Diagnosis(self._database.path, tuple(self._names), tuple(found), (), tuple(found), tuple(notes))

    def _outside(self, quick: bool) -> Iterator[Finding]:
        """What is about the file as a whole, or beside it."""
        with read_errors(self._database.path), self._database.snapshot():
            for name in self._names:
                if self._artifacts is not None and not quick:
                    yield from self._artifact_finding(name, self._artifacts)
            if self._whole_file:
                for name in names_without_tables(self._connection, self._names):
                    yield Finding("state_without_tables", name)
                locks = list(self._stale_locks())
                if locks:
                    names = tuple(path.name for path in locks[:_EXAMPLES])
                    yield Finding("locks_stale", count=len(locks), examples=names)

    def _artifact_finding(self, name: str, root: Path) -> Iterator[Finding]:
        """A run writes files before it says so in the database: while one is active, nothing can be said."""
        if any(self._is_active(name, source_id) for source_id in self._sources(name)):
            return
        left = [
            path.name
            for path in ArtifactFolder(root, name).leftover(StateStore(self._database, name), self._sources(name))
        ]
        if left:
            yield Finding("artifacts_leftover", name, len(left), examples=tuple(left[:_EXAMPLES]))

    def _notes(self) -> Iterator[str]:
        for name in self._names:
            base = name.removesuffix(SUFFIX)
            if name != base:
                yield (
                    f"{name}: a rebuild of {base} is prepared and not complete: `qedge ingest --rebuild` goes on with"
                    " the new model, and gives it up with the old one"
                )
                continue
            for run in StateStore(self._database, name).unfinished_runs():
                state = "is active" if self._is_active(name, run.source_id) else "has died: run its source again"
                yield f"{name}: run {run.run_id} {state}"

    # locks

    @contextmanager
    def locked(self) -> Generator[None]:
        """Hold the run locks of all sources. A run of a source that is new meanwhile only finds the database busy for
        the time of a transaction."""
        with ExitStack() as stack:
            for name in sorted({name.removesuffix(SUFFIX) for name in self._names}):
                for source_id in sorted(self._sources(name) | self._sources(name + SUFFIX)):
                    stack.enter_context(run_lock(self._database.path, StateStore(self._database, name), source_id))
            self._holds_locks = True
            try:
                yield
            finally:
                self._holds_locks = False

    def _sources(self, name: str) -> set[str]:
        return known_sources(self._connection, name, with_rows=name in self._names)

    def _is_active(self, name: str, source_id: str) -> bool:
        base = name.removesuffix(SUFFIX)
        if self._holds_locks:
            return False
        # To ask for a lock makes its file; a source without one has no run.
        return lock_path(self._database.path, base, source_id).exists() and is_locked(
            self._database.path, base, source_id
        )

    def _stale_locks(self) -> Iterator[Path]:
        path = self._database.path.resolve()
        known = {
            lock_path(path, name.removesuffix(SUFFIX), source_id)
            for name in self._names
            for source_id in self._sources(name)
        }
        pattern = re.compile(re.escape(path.name) + r"-[0-9a-f]{12}\.lock")
        for other in sorted(path.parent.iterdir()):
            if pattern.fullmatch(other.name) and other not in known and _idle(other):
                yield other

    # mending

    def treat(self, findings: Iterable[Finding]) -> Iterator[str]:
        kinds: dict[str | None, set[str]] = {}
        for finding in findings:
            if finding.mendable:
                kinds.setdefault(finding.collection, set()).add(finding.kind)
            if finding.kind == "index_damaged":
                yield from rebuild_indexes(self._database, self._names, frozenset(finding.examples))
        for name in self._names:
            own = kinds.get(name, set())
            if own - {"artifacts_leftover"}:
                self._report(f"{name}: repair", 0, 0)
                for line in mend_collection(self._database, name, frozenset(own), utc_now()):
                    yield f"{name}: {line}"
            if "artifacts_leftover" in own and self._artifacts is not None:
                folder = ArtifactFolder(self._artifacts, name)
                count = discard(folder.leftover(StateStore(self._database, name), self._sources(name)))
                yield f"{name}: {count} artefacts of no current version were deleted"
        for name, own in kinds.items():
            if name is not None and "state_without_tables" in own:
                with self._database.atomic():
                    StateStore(self._database, name).forget()
                yield f"{name}: the state of the collection, which has no tables, was deleted"
        if "locks_stale" in kinds.get(None, set()):
            removed = sum(_remove_lock(path) for path in list(self._stale_locks()))
            yield f"{removed} lock files of sources that are gone were deleted"

    def gather_vectors(self) -> Iterator[str]:
        for name in self._names:
            if moved := gather_vectors(self._database, name):
                yield f"{name}: {moved} vectors were moved together, out of blocks that were nearly empty"


def _idle(path: Path) -> bool:
    with suppress(OSError):
        return time.time() - path.stat().st_mtime > _LOCK_IDLE_SECONDS
    return False


def _remove_lock(path: Path) -> bool:
    """Unlinked while it is held: whoever waits for it sees that the file is gone, and makes a new one."""
    with suppress(OSError, Timeout), FileLock(path, timeout=0):
        path.unlink()
        return True
    return False
