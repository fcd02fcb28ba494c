"""Object stores, archives and remote disks as sources: ids, what changed, and what could not be listed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from qedge_dagster import FolderSource, FsspecSource
from qedge_dagster.errors import QedgeError
from qedge_dagster.sources import SourceItem, UnlistedPart
from tests.pipeline.support import contents, write
from tests.sources.stores import TREE, Store, facts, ids, make_zip, run

SELECTIONS: list[dict[str, Any]] = [
    {},
    {"pattern": "*.md", "exclude": "drafts"},
    {"pattern": "a/**/*.md"},
    {"recursive": False},
    {"include_hidden": True},
]


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_same_items_as_a_folder(store: Store, tmp_path: Path, selection: dict[str, Any]) -> None:
    """Ids, order, types, sizes and bytes are those of `FolderSource` over the same tree, whatever is selected."""
    store.put(TREE)
    folder = FolderSource(write(tmp_path / "tree", TREE), **selection)
    assert facts(store.source(**selection)) == facts(folder)


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_same_items_as_a_folder_in_a_zip(tmp_path: Path, selection: dict[str, Any]) -> None:
    """An archive too is a tree; and a folder inside of it."""
    write(tmp_path / "tree", TREE)
    url = make_zip(tmp_path / "a.zip", {f"top/{name}": content for name, content in TREE.items()})
    inner = url.replace("zip://", "zip://top", 1)
    assert facts(FsspecSource(inner, **selection)) == facts(FolderSource(tmp_path / "tree", **selection))
    assert ids(FsspecSource(url, "one.md")) == ["top/a/one.md"]


def test_same_rows_as_a_folder(store: Store, tmp_path: Path) -> None:
    """Everything that is stored is the same as of a folder; edits, additions and removals too, and what did not change
    is not embedded again."""
    folder = write(tmp_path / "tree", TREE)
    store.put(TREE)
    ours, theirs = tmp_path / "store.db", tmp_path / "folder.db"
    first = run(ours, store.source())
    run(theirs, FolderSource(folder, source_id="tree"))
    assert (first.outcome, first.documents_indexed) == ("completed", 7)
    assert contents(ours) == contents(theirs)

    again = run(ours, store.source())
    assert (again.documents_skipped, again.embed_calls) == (7, 0)

    edits: dict[str, str | bytes] = {"a/one.md": "# One\n\nThe other.\n", "new.txt": "Just come.\n"}
    write(folder, edits)
    store.put(edits)
    (folder / "a0.txt").unlink()
    store.remove("a0.txt")
    edited = run(ours, store.source())
    run(theirs, FolderSource(folder, source_id="tree"))
    assert (edited.documents_indexed, edited.documents_removed, edited.texts_embedded) == (2, 1, 2)
    assert contents(ours) == contents(theirs)


def test_a_folder_that_moves_to_a_store(store: Store, tmp_path: Path) -> None:
    """With the same source id it is the same source: everything is skipped."""
    store.put(TREE)
    database = tmp_path / "notes.db"
    run(database, FolderSource(write(tmp_path / "tree", TREE), source_id="tree"))
    moved = run(database, store.source())
    assert (moved.documents_skipped, moved.documents_removed, moved.embed_calls) == (7, 0, 0)


def test_an_archive_that_is_written_again(tmp_path: Path) -> None:
    """A second run over the same source sees what the archive holds now."""
    source = FsspecSource(make_zip(tmp_path / "a.zip", TREE))
    database = tmp_path / "notes.db"
    assert run(database, source).documents_indexed == 7
    assert run(database, source).documents_skipped == 7
    make_zip(tmp_path / "a.zip", {**TREE, "a/one.md": "# One\n\nThe other.\n"})
    edited = run(database, source)
    assert (edited.documents_indexed, edited.documents_skipped, edited.texts_embedded) == (1, 6, 1)


def test_an_archive_in_a_bucket(tmp_path: Path, s3: dict[str, Any]) -> None:
    """URLs may be chained: an archive that lies in an object store."""
    outer = Store(f"s3://{uuid4().hex}", s3)
    outer.filesystem.mkdir(outer.root)
    make_zip(tmp_path / "a.zip", TREE)
    outer.put({"a.zip": (tmp_path / "a.zip").read_bytes()})
    source = FsspecSource(f"zip://a::{outer.url}/a.zip", storage_options={"s3": s3})
    assert ids(source) == ["deep/two.md", "one.md"]


def test_the_gate_goes_by_the_checksum(store: Store, tmp_path: Path) -> None:
    """With `trust_timestamps` an unchanged object is not opened; one with other content is, in S3 by its ETag even
    where the content has the same size."""
    store.put(TREE)
    database = tmp_path / "notes.db"
    run(database, store.source())
    opened: list[str] = []

    class Watched(FsspecSource):
        def items(self) -> Iterator[SourceItem | UnlistedPart]:
            for item in super().items():
                assert isinstance(item, SourceItem)
                real = item.open

                def open_it(item: SourceItem = item, real: Any = real) -> Any:
                    opened.append(item.document_id)
                    return real()

                item.open = open_it
                yield item

    source = Watched(store.url, source_id="tree", storage_options=store.options)
    assert run(database, source, trust_timestamps=True).documents_skipped == 7
    assert opened == []
    store.put({"a/one.md": "# One\n\nThe forst.\n"})
    assert run(database, source, trust_timestamps=True).texts_embedded == 1
    assert set(opened) == {"a/one.md"}


@pytest.mark.parametrize(
    ("kind", "begins"), [("s3", "etag:"), ("zip", "crc:"), ("file", "20"), ("memory", "20")], ids=str
)
def test_what_stands_for_the_content(kind: str, begins: str, tmp_path: Path, s3: dict[str, Any]) -> None:
    """The store's checksum where it has one, else its time; the same content put again keeps the ETag."""
    if kind == "zip":
        source = FsspecSource(make_zip(tmp_path / "a.zip", {"a.txt": "a"}))
    else:
        url = {"s3": f"s3://{uuid4().hex}", "file": tmp_path.as_uri(), "memory": f"memory://{uuid4().hex}"}[kind]
        store = Store(url, s3 if kind == "s3" else {})
        if kind == "s3":
            store.filesystem.mkdir(store.root)
        store.put({"a.txt": "a"})
        source = store.source()
    (item,) = source.items()
    assert isinstance(item, SourceItem)
    assert item.modified_utc is not None
    assert item.modified_utc.startswith(begins)
    if kind == "s3":
        store.put({"a.txt": "a"})
        assert [each.modified_utc for each in source.items() if isinstance(each, SourceItem)] == [item.modified_utc]


def test_written_between_listing_and_reading(store: Store) -> None:
    """What is read is the object as it is now, whole, not cut at the size it was listed with."""
    store.put({"a.txt": "short"})
    (item,) = store.source().items()
    assert isinstance(item, SourceItem)
    store.put({"a.txt": "much longer than it was"})
    with item.open() as stream:
        assert stream.read() == b"much longer than it was"


def test_a_part_that_cannot_be_listed(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one folder fails, whatever the client raises, the rest is ingested and nothing is removed; once it can be
    listed again, what is gone is removed."""
    store.put(TREE)
    database = tmp_path / "notes.db"
    run(database, store.source())
    store.remove("a0.txt")
    real = store.filesystem.ls

    def failing(path: str, **options: Any) -> Any:
        if path.rstrip("/").endswith("/a"):
            raise ConnectionResetError("http://user:password@host/a")
        return real(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(store.filesystem, "ls", failing)  # the one that fsspec gives to everyone with these options
        result = run(database, store.source())
    assert (result.outcome, result.documents_removed, result.documents_skipped) == ("completed", 0, 4)
    assert result.warnings[0] == "a/ could not be listed: ConnectionResetError"
    assert "password" not in "".join(result.warnings)
    assert run(database, store.source()).documents_removed == 1


def test_a_missing_root(store: Store, tmp_path: Path) -> None:
    """A root that is not there fails the run before any document, and removes none."""
    store.put(TREE)
    database = tmp_path / "notes.db"
    run(database, store.source())
    missing = FsspecSource(f"{store.url}/nowhere", source_id="tree", storage_options=store.options)
    result = run(database, missing, allow_empty=True)
    assert (result.outcome, result.documents_removed) == ("failed", 0)
    assert result.failure is not None
    assert result.failure.code == 6051
    assert str(missing.location) in result.failure.message


def test_a_root_that_is_a_file(store: Store) -> None:
    """A URL of one object is no folder."""
    store.put({"a.txt": "a"})
    with pytest.raises(QedgeError, match="6051"):
        list(FsspecSource(f"{store.url}/a.txt", storage_options=store.options).items())


def test_markers_and_keys_without_names(s3: dict[str, Any]) -> None:
    """The empty object that a console makes for a folder is no document. What lies below an empty name cannot be told
    from its parent by fsspec, and is reported as not listed."""
    store = Store(f"s3://{uuid4().hex}/tree", s3)
    bucket = store.root.partition("/")[0]
    store.filesystem.mkdir(bucket)
    for key in ("tree/", "tree/a/", "tree/a/one.txt"):
        store.filesystem.call_s3("put_object", Bucket=bucket, Key=key, Body=b"")
    assert [item for item in store.source().items() if isinstance(item, UnlistedPart)] == []
    assert ids(store.source()) == ["a/one.txt"]
    store.filesystem.call_s3("put_object", Bucket=bucket, Key="tree/a//two.txt", Body=b"")
    assert [item.location for item in store.source().items() if isinstance(item, UnlistedPart)] == ["a//"]
    assert ids(store.source()) == ["a/one.txt"]


def test_odd_names(s3: dict[str, Any], tmp_path: Path) -> None:
    """Control characters and two normal forms of one name have the ids that files of these names have."""
    names = ["tab\there.txt", "cafe\u0301.txt", "caf\u00e9.txt", "%{41}.txt", "question?.txt", "hash#.txt"]
    store = Store(f"s3://{uuid4().hex}", s3)
    store.filesystem.mkdir(store.root)
    store.put(dict.fromkeys(names, "x"))
    write(tmp_path / "tree", dict.fromkeys(names, "x"))
    assert facts(store.source()) == facts(FolderSource(tmp_path / "tree"))


def test_links(tmp_path: Path) -> None:
    """A link to a file is read, one to a folder is not followed, one to nothing is reported, a FIFO is left out."""
    tree = write(tmp_path / "tree", {"a.txt": "a"})
    write(tmp_path / "other", {"b.txt": "b"})
    (tree / "file.txt").symlink_to(tmp_path / "other" / "b.txt")
    (tree / "folder").symlink_to(tmp_path / "other")
    (tree / "gone.txt").symlink_to(tmp_path / "nothing")
    os.mkfifo(tree / "pipe.txt")
    found = list(FsspecSource(tree.as_uri()).items())
    assert [item.document_id for item in found if isinstance(item, SourceItem)] == ["a.txt", "file.txt"]
    assert [item.location for item in found if isinstance(item, UnlistedPart)] == ["gone.txt"]


def test_nothing_is_removed_by_a_store_that_shows_nothing(tmp_path: Path) -> None:
    """A root that lists empty is not taken for one that was emptied."""
    url = f"memory://{uuid4().hex}"
    store = Store(url, {})
    store.put(TREE)
    database = tmp_path / "notes.db"
    run(database, store.source())
    filesystem = store.filesystem
    assert isinstance(filesystem, MemoryFileSystem)
    filesystem.rm(store.root, recursive=True)
    filesystem.mkdir(store.root)
    result = run(database, store.source())
    assert (result.outcome, result.documents_removed) == ("completed", 0)
    assert run(database, store.source(), allow_empty=True).documents_removed == 7
