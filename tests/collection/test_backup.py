"""A backup is the database at one moment, whole or not there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import qedge_dagster
from qedge_dagster.collection import Collection
from qedge_dagster.collection.backup import backup
from qedge_dagster.collection.connection import Database
from qedge_dagster.errors import QedgeError
from tests.collection.support import HashEmbedder, build, insert, row

ROWS = [row(f"roof {number} " + "word " * 40, f"d{number}") for number in range(3_000)]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("template") / "c.db"
    build(path, ROWS)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path, template: bytes) -> Path:
    (tmp_path / "c.db").write_bytes(template)
    return tmp_path / "c.db"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """In a folder of its own, so that whatever else is left there is seen."""
    (tmp_path / "backups").mkdir()
    return tmp_path / "backups" / "copy.db"


def beside(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir())


def refused(code: int, path: Path, target: Path, **options: bool) -> QedgeError:
    with pytest.raises(QedgeError) as error:
        backup(path, target, **options)
    assert error.value.code == code
    return error.value


def test_every_table_is_copied(path: Path, target: Path) -> None:
    """Those of an application too; the copy is one file, without a log, and searches like the original."""
    with closing(Database(path)) as database:
        database.connection.execute("CREATE TABLE app (x); INSERT INTO app VALUES (7)")
        kept = database.connection.pragma("user_version")
    told: list[tuple[str, int, int]] = []
    size = backup(path, target, on_progress=lambda *progress: told.append(progress))
    assert beside(target) == ["copy.db"]
    assert size == target.stat().st_size
    copying = [(done, total) for what, done, total in told if what == "copying pages"]
    assert len(copying) > 2
    assert copying[-1][0] == copying[-1][1] > 0
    with closing(apsw.Connection(str(target))) as copy:
        assert copy.execute("SELECT x FROM app").get == 7
        assert (copy.pragma("user_version"), copy.pragma("journal_mode")) == (kept, "delete")
    embedder = HashEmbedder()
    with Collection.open(path, embedder=embedder) as original, Collection.open(target, embedder=embedder) as copied:
        assert copied.hybrid_search("roof 7") == original.hybrid_search("roof 7")


def test_a_backup_is_of_one_moment(path: Path, target: Path) -> None:
    """What is committed while pages are copied neither gets into the copy nor makes it begin again."""
    with closing(Database(path)) as writer, Collection.open(path) as collection:
        calls = 0

        def write(_what: str, done: int, _total: int) -> None:
            nonlocal calls
            calls += done > 0
            with writer.atomic():
                insert(writer, "chunks", [row(f"new {calls} {done}", f"new {calls} {done}")], HashEmbedder())

        backup(path, target, on_progress=write)
        assert calls == -(-target.stat().st_size // (128 * 4096))
        assert collection.chunk_count() > len(ROWS) + 1
    with Collection.open(target) as copied:
        assert copied.chunk_count() == len(ROWS)


def test_an_existing_file_is_kept(path: Path, target: Path) -> None:
    """6005 without `overwrite`; with it the file is replaced, and only by a copy that is whole."""
    target.write_text("precious", "utf-8")
    assert "--overwrite" in refused(6005, path, target).remedy
    assert target.read_text("utf-8") == "precious"
    backup(path, target, overwrite=True)
    with Collection.open(target) as copied:
        assert copied.chunk_count() == len(ROWS)


def test_a_file_that_comes_meanwhile_is_kept(path: Path, target: Path) -> None:
    """Without `overwrite` nothing is ever replaced."""
    with pytest.raises(QedgeError) as error:
        backup(path, target, on_progress=lambda *_: target.write_text("precious", "utf-8") and None)
    assert error.value.code == 6005
    assert target.read_text("utf-8") == "precious"
    assert beside(target) == ["copy.db"]


def test_a_file_system_without_hard_links(path: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the copy is renamed."""

    def link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    backup(path, target)
    assert beside(target) == ["copy.db"]


def test_targets_that_cannot_be(path: Path, target: Path) -> None:
    """The database itself, a database that is in use, a folder, a folder that is missing."""
    refused(6005, path, path, overwrite=True)
    refused(6005, path, target.parent, overwrite=True)
    refused(6207, path, target.parent / "missing" / "copy.db")
    wal = target.with_name("copy.db-wal")
    wal.touch()
    assert "in use" in refused(6005, path, target, overwrite=True).message
    assert beside(target) == ["copy.db-wal"]
    refused(6002, path.with_name("none.db"), target)


def test_a_damaged_database_is_not_backed_up(path: Path, target: Path) -> None:
    """6204, and an older backup stays."""
    backup(path, target)
    whole = target.read_bytes()
    with closing(Database(path)) as database:
        page = database.connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'chunks'").get
    content = bytearray(path.read_bytes())
    content[4096 * (page - 1) : 4096 * page] = b"\x00" * 4096
    path.write_bytes(content)
    assert "qedge doctor" in refused(6204, path, target, overwrite=True).remedy
    assert target.read_bytes() == whole
    assert beside(target) == ["copy.db"]


_PROGRAM = """
import resource, sys, time
from qedge_dagster.collection.backup import backup
source, target, stop_at, limit = sys.argv[1:]
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
def report(what, done, total):
    if stop_at == what or done == total and stop_at == f"{what} to the end":
        print(what, flush=True)
        time.sleep(60)
try:
    backup(source, target, on_progress=report)
except Exception as error:
    print(getattr(error, "code", None), error)
"""


def _start(path: Path, target: Path, stop_at: str = "", limit: int = 0) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(qedge_dagster.__file__).parent.parent)}
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(path), str(target), stop_at, str(limit)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("stop_at", ["copying pages", "copying pages to the end", "checking the copy"])
def test_a_kill_leaves_no_target(path: Path, target: Path, stop_at: str) -> None:
    """Whenever it comes before the end; the next backup is not hindered by what the killed one has left."""
    with _start(path, target, stop_at) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == stop_at.removesuffix(" to the end")
        process.send_signal(signal.SIGKILL)
    assert not target.exists()
    assert all(name.startswith(".copy.db.") for name in beside(target))
    backup(path, target)
    with Collection.open(target) as copied:
        assert copied.chunk_count() == len(ROWS)


@pytest.mark.parametrize("limit", [64 * 1024, 1024 * 1024])
def test_no_room(path: Path, target: Path, limit: int) -> None:
    """A file that cannot grow, as on a full disk: 6207 says what to do, and nothing is left."""
    with _start(path, target, limit=limit) as process:
        output, _ = process.communicate(timeout=60)
    assert output.startswith("6207 6207 WriteFailed: ")
    assert "copy.db cannot be written" in output
    assert "has room" in output
    assert beside(target) == []
