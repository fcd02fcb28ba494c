"""What could not be seen is not gone: the program as a process of its own, to which permissions apply."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.cli.conftest import DOCUMENTS, finish

IDS = sorted(DOCUMENTS)

_LIBC = ctypes.CDLL(None, use_errno=True)
_DROP_FROM_BOUNDING_SET = 24  # PR_CAPBSET_DROP
_OVERRIDE, _READ_SEARCH = 1, 2  # CAP_DAC_…


def _without_privileges() -> None:
    """Before the program is started: root without what lets it read everything is a user like any other."""
    if os.geteuid() == 0:
        for capability in (_OVERRIDE, _READ_SEARCH):
            if _LIBC.prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "prctl")


class Place:
    """The documents, and a database of them."""

    def __init__(self, docs: Path, database: Path, model: Path) -> None:
        self.docs = docs
        self.database = database
        self._model = model

    def run(self, command: str, *options: object, **extra: str) -> subprocess.CompletedProcess[str]:
        """`ingest` or `prune` of the folder."""
        more = ("--no-dagster", "--model", self._model) if command == "ingest" else ()
        return finish(
            *(command, self.docs, "--db", self.database, "--source-id", "club", "--json", *more, *options),
            preexec_fn=_without_privileges,
            **extra,
        )

    def ids(self) -> list[str]:
        with apsw.Connection(str(self.database)) as connection:
            return [row[0] for row in connection.execute("SELECT DISTINCT document_id FROM chunks ORDER BY 1")]


@pytest.fixture
def place(docs: Path, ingested: Path, model: Path) -> Place:
    return Place(docs, ingested, model)


def _move_away(place: Place) -> None:
    place.docs.rename(place.docs.with_name("moved"))


def _dangle(place: Place) -> None:
    _move_away(place)
    place.docs.symlink_to(place.docs.with_name("unmounted"))


def _forbid(place: Place) -> None:
    place.docs.chmod(0)


@pytest.mark.parametrize(
    ("command", "fault", "code", "message"),
    [
        ("ingest", _move_away, 1, "qedge: 6051 SourceUnavailable: "),
        ("prune", _dangle, 1, "qedge: 6051 SourceUnavailable: "),
        ("ingest", _forbid, 2, "is not readable"),
    ],
)
def test_a_root_that_cannot_be_listed(
    place: Place, command: str, fault: Callable[[Place], None], code: int, message: str
) -> None:
    """The command fails, and nothing is removed, whatever --allow-empty says."""
    fault(place)
    result = place.run(command, "--allow-empty")
    assert result.returncode == code
    assert message in result.stderr
    assert place.ids() == IDS


@pytest.mark.parametrize("command", ["ingest", "prune"])
def test_a_mount_that_is_not_there(place: Place, command: str) -> None:
    """An empty folder, as an unmounted one is, removes nothing and says so; --allow-empty empties the collection."""
    _move_away(place)
    place.docs.mkdir()
    result = place.run(command)
    assert result.returncode == 0
    [warning] = json.loads(result.stdout)["warnings"]
    assert warning.startswith("3 documents that were not seen are kept: the source holds no document at all")
    assert "--allow-empty" in warning
    assert place.ids() == IDS
    result = place.run(command, "--allow-empty")
    assert (result.returncode, json.loads(result.stdout)["documents_removed"]) == (0, 3)
    assert place.ids() == []


@pytest.mark.parametrize("command", ["ingest", "prune"])
def test_a_subfolder_that_may_not_be_read(place: Place, command: str) -> None:
    """Its documents stay, and so does one that is gone from elsewhere, as it may have been moved into it; the result
    names the folder. Once it can be read, what is gone is removed."""
    (place.docs / "notes.txt").unlink()
    (place.docs / "boats").chmod(0)
    result = place.run(command, "--allow-empty")
    assert result.returncode == 0
    warnings = json.loads(result.stdout)["warnings"]
    assert "boats/ could not be listed: Permission denied" in warnings
    assert any(warning.startswith("3 documents that were not seen are kept: ") for warning in warnings)
    assert place.ids() == IDS
    (place.docs / "boats").chmod(0o755)
    assert place.run(command).returncode == 0
    assert place.ids() == ["boats/engine.md", "boats/mooring.md"]


def test_files_that_may_not_be_read(place: Place) -> None:
    """Each is 6053 and keeps its chunks; twenty in a row are 6010, which ends the run before anything is removed."""
    for name in IDS:
        (place.docs / name).chmod(0)
    result = place.run("ingest")
    assert (result.returncode, json.loads(result.stdout)["outcome"]) == (0, "completed")
    failed = json.loads(result.stdout)["documents"]
    assert [(entry["document_id"], entry["failure"]["code"]) for entry in failed] == [(name, 6053) for name in IDS]
    (place.docs / "notes.txt").unlink()
    for number in range(30):
        path = place.docs / f"boats/{number:02}.txt"
        path.write_text("Forbidden.", "utf-8")
        path.chmod(0)
    result = place.run("ingest")
    assert result.returncode == 1
    assert "qedge: 6010 RunAborted: 20 documents in a row failed, the last with 6053" in result.stderr
    assert json.loads(result.stdout)["documents_failed"] == 20
    assert place.ids() == IDS


def test_another_recipe_that_is_refused(place: Place) -> None:
    """6009 at the first document; nothing is indexed again and nothing removed. Without --strict-recipe, it is."""
    (place.docs / "notes.txt").unlink()
    result = place.run("ingest", "--strict-recipe", "--chunk-tokens", 60)
    assert result.returncode == 1
    assert "qedge: 6009 RecipeChanged: document 'boats/engine.md' was indexed under another recipe" in result.stderr
    assert json.loads(result.stdout)["documents_indexed"] == 0
    assert place.ids() == IDS
    result = place.run("ingest", "--chunk-tokens", 60)
    assert (result.returncode, json.loads(result.stdout)["documents_indexed"]) == (0, 2)
    assert place.ids() == ["boats/engine.md", "boats/mooring.md"]


@pytest.mark.parametrize("source_id", ["", "a\tb"])
def test_a_source_id_that_cannot_be(place: Place, source_id: str) -> None:
    """6055 before anything is opened."""
    before = place.database.read_bytes()
    result = place.run("ingest", "--source-id", source_id)
    assert result.returncode == 1
    assert "qedge: 6055 SourceIdInvalid: " in result.stderr
    assert place.database.read_bytes() == before
