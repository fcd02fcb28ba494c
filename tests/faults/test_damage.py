"""A database that is damaged, page by page."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from qedge_dagster import QedgeError
from qedge_dagster.errors import Failure
from tests.faults.support import Scene, copy_database, run

_PAGE = 4096


def damage(folder: Path, step: int) -> Counter[str]:
    """Zeros or noise in place of a page, then a run."""
    scene = Scene.make(folder, 2)
    whole, database, chance = scene.references[0].read_bytes(), folder / "index.db", Random(1)
    ends: Counter[str] = Counter()
    for offset in range(0, len(whole), step * _PAGE):
        for noise in (bytes(_PAGE), chance.randbytes(_PAGE)):
            copy_database(scene.references[0], database)
            database.write_bytes(whole[:offset] + noise + whole[offset + _PAGE :])
            ends[_end(database, scene)] += 1
    print(f"\n{ends.total()} damaged databases: {dict(ends)}")
    return ends


def _end(database: Path, scene: Scene) -> str:
    try:
        result = run(database, scene.folders[1])
    except QedgeError as error:
        return _told(error.failure())
    if result.failure is not None:
        return _told(result.failure)
    assert (result.outcome, result.documents_failed) == ("completed", 0)
    return "the page was not needed"


def _told(failure: Failure) -> str:
    assert "backup" in failure.remedy
    return str(failure.code)


def test_some_damaged_pages_are_told_as_damage(tmp_path: Path) -> None:
    """The run ends with 6204 and what to do, unless it met no page that is damaged: never with failed documents."""
    ends = damage(tmp_path, step=3)
    assert set(ends) == {"6204", "the page was not needed"}


@pytest.mark.long
def test_every_damaged_page_is_told_as_damage(tmp_path: Path) -> None:
    """The same for all of them; a run meets most."""
    ends = damage(tmp_path, step=1)
    assert set(ends) == {"6204", "the page was not needed"}
    assert ends["6204"] > ends["the page was not needed"]
