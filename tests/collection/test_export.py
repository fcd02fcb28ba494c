"""The Parquet export: everything, in order, and whole or not at all."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from qedge_dagster.collection import Collection, export
from qedge_dagster.errors import QedgeError
from tests.collection.support import HashEmbedder, build, row


def test_every_column_and_vector(tmp_path):
    """What is read back are the stored chunks, in reading order, with their vectors as lists of fixed length."""
    embedder = HashEmbedder()
    rows = [row(f"roof {number}\0ä🙂", f"d{number % 3}", number // 3, page=number) for number in range(10)]
    build(tmp_path / "c.db", rows[::-1], embedder)
    with Collection.open(tmp_path / "c.db") as collection:
        assert collection.export(tmp_path / "c.parquet") == 10
        chunks = list(collection.chunks())
    table = pq.read_table(tmp_path / "c.parquet")
    assert str(table.schema.field("embedding").type) == "fixed_size_list<element: float>[8]"
    columns = table.to_pydict()
    vectors = columns.pop("embedding")
    columns["breadcrumb"] = columns.pop("heading_path")
    assert {name: [getattr(chunk, name) for chunk in chunks] for name in columns} == columns
    expected = embedder.embed_documents([chunk.text for chunk in chunks]).vectors
    assert np.array_equal(np.array(vectors, dtype=np.float32), expected)


def test_a_large_collection_has_many_row_groups(tmp_path, monkeypatch):
    """Only one group is in memory at a time, and none is lost at their borders."""
    monkeypatch.setattr(export, "_ROW_GROUP", 4)
    build(tmp_path / "c.db", [row(f"t{number}", "d", number) for number in range(10)])
    with Collection.open(tmp_path / "c.db") as collection:
        collection.export(tmp_path / "c.parquet")
    file = pq.ParquetFile(tmp_path / "c.parquet")
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [4, 4, 2]
    assert file.read().column("ordinal").to_pylist() == list(range(10))


def test_an_empty_collection(tmp_path):
    """A file with the columns and no rows."""
    build(tmp_path / "c.db", [])
    with Collection.open(tmp_path / "c.db") as collection:
        assert collection.export(tmp_path / "c.parquet") == 0
    assert pq.read_table(tmp_path / "c.parquet").num_rows == 0


def test_the_file_that_was_there_survives_a_failure(tmp_path, monkeypatch):
    """An export that breaks off leaves the old file as it was and nothing beside it."""
    build(tmp_path / "c.db", [row("roof")])
    target = tmp_path / "out" / "c.parquet"
    target.parent.mkdir()
    target.write_bytes(b"old")

    def no_room(*_args):
        raise OSError(28, "No space left on device")

    with Collection.open(tmp_path / "c.db") as collection:
        monkeypatch.setattr(pq.ParquetWriter, "write_table", no_room)
        with pytest.raises(QedgeError, match="No space left") as caught:
            collection.export(target)
        assert caught.value.code == 6207
        monkeypatch.undo()
        assert [path.name for path in target.parent.iterdir()] == ["c.parquet"]
        assert target.read_bytes() == b"old"
        collection.export(target)
    assert pq.read_table(target).num_rows == 1


def test_a_folder_that_does_not_exist(tmp_path):
    """6207, with what to do."""
    build(tmp_path / "c.db", [row("roof")])
    with Collection.open(tmp_path / "c.db") as collection, pytest.raises(QedgeError) as caught:
        collection.export(tmp_path / "absent" / "c.parquet")
    assert caught.value.code == 6207
