"""Folders as sources."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qedge_dagster.errors import QedgeError
from qedge_dagster.sources import FolderSource, SourceItem, UnlistedPart
from qedge_dagster.sources import folder as folder_module


def _write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())


def _ids(source: FolderSource) -> list[str]:
    return [item.document_id for item in source.items() if isinstance(item, SourceItem)]


def _unlisted(source: FolderSource) -> list[str]:
    return [item.location for item in source.items() if isinstance(item, UnlistedPart)]


def test_facts_of_an_item(tmp_path: Path) -> None:
    """An item has the file's type, size, time to the nanosecond, path, and a stream that can be had twice."""
    _write(tmp_path, "sub/Note.MD")
    os.utime(tmp_path / "sub/Note.MD", ns=(0, 1_700_000_000_000_000_007))
    (item,) = FolderSource(tmp_path).items()
    assert isinstance(item, SourceItem)
    assert (item.document_id, item.media_type, item.size_bytes) == ("sub/Note.MD", "text/markdown", 11)
    assert item.modified_utc == "2023-11-14T22:13:20.000000007Z"
    assert item.path is not None
    assert Path(item.path).read_bytes() == b"sub/Note.MD"
    for _ in range(2):
        with item.open() as stream:
            assert stream.read() == b"sub/Note.MD"


@given(st.sets(st.lists(st.text("ab-.0", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join), max_size=12))
def test_order_is_that_of_the_ids(tmp_path_factory: pytest.TempPathFactory, names: set[str]) -> None:
    """The whole tree comes in the order of its ids, although it is listed folder by folder."""
    root = tmp_path_factory.mktemp("tree")
    made: set[str] = set()
    for name in sorted(names):
        parts = name.split("/")
        folders = {"/".join(parts[:i]) for i in range(1, len(parts))}
        if not any(part.startswith(".") for part in parts) and not folders & made and not (root / name).is_dir():
            _write(root, name)
            made.add(name)
    assert _ids(FolderSource(root)) == sorted(made)


def test_folder_sorts_as_if_it_ended_in_a_slash(tmp_path: Path) -> None:
    """`-` and `.` come before `/`, digits and letters after it."""
    _write(tmp_path, "a/x", "a-b", "a.txt", "a0", "a/-")
    assert _ids(FolderSource(tmp_path)) == ["a-b", "a.txt", "a/-", "a/x", "a0"]


def test_folders_are_listed_when_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first item needs only the folders on the way to it."""
    _write(tmp_path, "a/1", "b/1", "c/1")
    listed: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(folder_module.os, "scandir", lambda path: listed.append(Path(path).name) or scandir(path))
    items = FolderSource(tmp_path).items()
    next(items)
    assert listed == [tmp_path.name, "a"]


def test_pattern_exclude_and_recursion(tmp_path: Path) -> None:
    """Patterns select files, exclusions drop files and whole folders, and recursion can be turned off."""
    _write(tmp_path, "a.md", "b.txt", "c.pdf", "drafts/d.md", "x/e.md", "x/old/f.md")
    assert _ids(FolderSource(tmp_path, "*.md")) == ["a.md", "drafts/d.md", "x/e.md", "x/old/f.md"]
    assert _ids(FolderSource(tmp_path, ["*.md", "*.txt"], recursive=False)) == ["a.md", "b.txt"]
    assert _ids(FolderSource(tmp_path, "x/*.md")) == ["x/e.md"]
    assert _ids(FolderSource(tmp_path, exclude=["drafts", "*.pdf", "x/old"])) == ["a.md", "b.txt", "x/e.md"]
    assert _ids(FolderSource(tmp_path, exclude="*")) == []


def test_excluded_folder_is_not_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exclusion saves the listing of a huge folder, not only its files."""
    _write(tmp_path, "node_modules/x/1", "a/1")
    listed: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(folder_module.os, "scandir", lambda path: listed.append(Path(path).name) or scandir(path))
    assert _ids(FolderSource(tmp_path, exclude="node_modules")) == ["a/1"]
    assert listed == [tmp_path.name, "a"]


def test_hidden_names(tmp_path: Path) -> None:
    """Hidden files and folders and Office lock files are left out unless asked for; the root may be hidden."""
    root = tmp_path / ".root"
    _write(root, ".hidden", ".git/config", "~$letter.docx", "a")
    assert _ids(FolderSource(root)) == ["a"]
    assert _ids(FolderSource(root, include_hidden=True)) == [".git/config", ".hidden", "a", "~$letter.docx"]


def test_links(tmp_path: Path) -> None:
    """A link to a file is read, a link to a folder is not followed, a dangling link is reported and nothing else is."""
    outside = tmp_path / "outside"
    _write(outside, "target.md", "folder/x.md")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link.md").symlink_to(outside / "target.md")
    (root / "folder").symlink_to(outside / "folder")
    (root / "loop").symlink_to(root)
    (root / "dangling.md").symlink_to(outside / "gone.md")
    (root / "dangling.tmp").symlink_to(outside / "gone.tmp")
    source = FolderSource(root, "*.md")
    assert _ids(source) == ["link.md"]
    assert _unlisted(source) == ["dangling.md"]
    (item,) = (item for item in source.items() if isinstance(item, SourceItem))
    assert item.size_bytes == len("target.md")


def test_special_files_never_block(tmp_path: Path) -> None:
    """FIFOs, sockets and links to devices are left out."""
    _write(tmp_path, "a.md", "z.md")
    os.mkfifo(tmp_path / "fifo.md")
    (tmp_path / "device.md").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s.md"))
        assert _ids(FolderSource(tmp_path)) == ["a.md", "z.md"]
        assert _unlisted(FolderSource(tmp_path)) == []


def test_file_that_becomes_a_fifo_does_not_block(tmp_path: Path) -> None:
    """What is no regular file any more when it is opened fails instead of blocking."""
    _write(tmp_path, "a.md")
    (item,) = FolderSource(tmp_path).items()
    assert isinstance(item, SourceItem)
    (tmp_path / "a.md").unlink()
    os.mkfifo(tmp_path / "a.md")
    with pytest.raises(QedgeError) as caught:
        item.open()
    assert caught.value.code == 6053


def test_file_deleted_before_it_is_opened(tmp_path: Path) -> None:
    """Its `open` fails with the system's own error."""
    _write(tmp_path, "a.md")
    (item,) = FolderSource(tmp_path).items()
    assert isinstance(item, SourceItem)
    (tmp_path / "a.md").unlink()
    with pytest.raises(FileNotFoundError):
        item.open()


@pytest.mark.parametrize("kind", ["missing", "a file"])
def test_unavailable_root(tmp_path: Path, kind: str) -> None:
    """A root that is missing or no folder fails before any item, and names its path."""
    root = tmp_path / "root"
    if kind == "a file":
        root.write_text("x")
    with pytest.raises(QedgeError) as caught:
        next(FolderSource(root).items())
    assert caught.value.code == 6051
    assert str(root) in caught.value.message


def test_unreadable_root_and_subfolder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A root that may not be listed fails the source; a subfolder is reported in its place and the rest is listed."""
    _write(tmp_path, "a/1", "b/1", "c/1")
    scandir, denied = os.scandir, tmp_path / "b"

    def refusing(path: str) -> object:
        if Path(path) == denied:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(folder_module.os, "scandir", refusing)
    assert list(map(_place, FolderSource(tmp_path).items())) == ["a/1", "unlisted b/", "c/1"]
    denied = tmp_path
    with pytest.raises(QedgeError) as caught:
        list(FolderSource(tmp_path).items())
    assert caught.value.code == 6051


def _place(item: SourceItem | UnlistedPart) -> str:
    return item.document_id if isinstance(item, SourceItem) else f"unlisted {item.location}"


def test_subfolder_that_vanishes_is_unlisted(tmp_path: Path) -> None:
    """A folder that is gone when its turn comes is not taken for an empty one."""
    _write(tmp_path, "a/1", "b/1")
    items = FolderSource(tmp_path).items()
    next(items)
    (tmp_path / "b/1").unlink()
    (tmp_path / "b").rmdir()
    assert list(items) == [UnlistedPart("b/", "No such file or directory")]


def test_deep_tree(tmp_path: Path) -> None:
    """Depth is limited by the system, not by recursion."""
    folders = [str(tmp_path) + "/d" * depth for depth in range(1, 1101)]
    for folder in folders:
        os.mkdir(folder)
    Path(folders[-1], "a.md").write_text("x")
    assert _ids(FolderSource(tmp_path)) == ["d/" * 1100 + "a.md"]
    Path(folders[-1], "a.md").unlink()
    for folder in reversed(folders):  # pytest's own cleaning is recursive
        os.rmdir(folder)


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    """They have ids of their own and can be read; a file that is really called like such an id is another document."""
    root = os.fsencode(tmp_path)
    for name in (b"caf\xe9.txt", b"caf%{E9}.txt", b"caf\xc3\xa9.txt"):
        with open(os.path.join(root, name), "wb") as file:
            file.write(name)
    items = [item for item in FolderSource(tmp_path).items() if isinstance(item, SourceItem)]
    found = {item.document_id: item.open().read() for item in items}
    assert found == {
        "caf%{E9}.txt": b"caf\xe9.txt",
        "caf%{25}{E9}.txt": b"caf%{E9}.txt",
        "café.txt": b"caf\xc3\xa9.txt",
    }


def test_one_name_in_two_normal_forms(tmp_path: Path) -> None:
    """On two machines it is one document; on one disk the two files are two, folders included."""
    for form in ("NFC", "NFD"):
        root = tmp_path / form
        _write(root, normalize(form, "é/ü.md"))
        assert _ids(FolderSource(root)) == [normalize("NFC", "é/ü.md")]
        _write(tmp_path / "both", normalize(form, "é/ü.md"))
    assert sorted(_ids(FolderSource(tmp_path / "both"))) == ["e%{CC81}/ü.md", "é/ü.md"]


def test_default_source_id_is_the_folder_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever name the folder is given by, and from wherever, it is the same source."""
    root = tmp_path / "docs"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(root)
    expected = FolderSource(root).source_id
    assert expected == str(root.resolve())
    assert FolderSource(tmp_path / "link").source_id == expected
    assert FolderSource(f"{root}/sub/../").source_id == expected
    monkeypatch.chdir(tmp_path)
    relative = FolderSource("docs")
    assert relative.source_id == expected
    assert FolderSource(root, source_id="mine").source_id == "mine"
    _write(root, "a.md")
    monkeypatch.chdir(root)
    assert _ids(relative) == ["a.md"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [({"path": ""}, 6005), ({"pattern": ""}, 6005), ({"pattern": []}, 6005), ({"source_id": "a\nb"}, 6055)],
)
def test_refused_arguments(tmp_path: Path, arguments: dict[str, object], code: int) -> None:
    """Arguments that could only go wrong later are refused at once."""
    with pytest.raises(QedgeError) as caught:
        FolderSource(**{"path": tmp_path, **arguments})  # type: ignore[arg-type]
    assert caught.value.code == code
