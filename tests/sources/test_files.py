"""Listed files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from qedge_dagster.errors import QedgeError
from qedge_dagster.sources import FilesSource


def test_items_in_the_order_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The id is the path as given, tidied; the source can be listed again."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("b.md", "sub/a.txt"):
        (tmp_path / name).write_text(name)
    source = FilesSource((path for path in ("./b.md", Path("sub/../sub/a.txt"), tmp_path / "b.md")), "mine")
    for _ in range(2):
        items = list(source.items())
        assert [item.document_id for item in items] == ["b.md", "sub/a.txt", f"{tmp_path}/b.md"]
        assert [item.media_type for item in items] == ["text/markdown", "text/plain", "text/markdown"]
        assert items[0].open().read() == b"b.md"


def test_unreadable_files_are_items_whose_open_fails(tmp_path: Path) -> None:
    """So that the run records each by name: a missing file, a folder, and a FIFO, which must not block."""
    fifo = tmp_path / "fifo.md"
    os.mkfifo(fifo)
    missing, folder, pipe = FilesSource([tmp_path / "gone.md", tmp_path, fifo], "mine").items()
    assert (missing.size_bytes, missing.modified_utc) == (None, None)
    with pytest.raises(FileNotFoundError):
        missing.open()
    for item in (folder, pipe):
        with pytest.raises((QedgeError, IsADirectoryError)):
            item.open()


@pytest.mark.parametrize("nanoseconds", [-1, 0, 4_102_444_800_000_000_001])
def test_time_is_exact(tmp_path: Path, nanoseconds: int) -> None:
    """Times before 1970 and far off ones are exact to the nanosecond, and all are of one width."""
    path = tmp_path / "a.md"
    path.write_text("x")
    os.utime(path, ns=(0, nanoseconds))
    if path.stat().st_mtime_ns != nanoseconds:
        nanoseconds = path.stat().st_mtime_ns  # a file system with a coarser clock
    (item,) = FilesSource([path], "mine").items()
    expected = {-1: "1969-12-31T23:59:59.999999999Z", 0: "1970-01-01T00:00:00.000000000Z"}
    assert item.modified_utc == expected.get(nanoseconds, f"2100-01-01T00:00:00.{nanoseconds % 10**9:09}Z")


def test_names_without_a_dot_have_no_type(tmp_path: Path) -> None:
    """A file called `md` is not Markdown."""
    (item,) = FilesSource([tmp_path / "md"], "mine").items()
    assert item.media_type == "application/octet-stream"
