"""Each way in which the parts of a collection can disagree is found, and a sound one has no problems."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.integrity import check_integrity
from qedge_dagster.errors import QedgeError
from tests.collection.support import build, row

ROWS = [row(f"roof {number}", f"d{number % 3}", number // 3) for number in range(9)]


@pytest.fixture
def path(tmp_path):
    build(tmp_path / "c.db", ROWS)
    return tmp_path / "c.db"


def problems(path, *statements, read_only=True):
    with closing(Database(path)) as database:
        for statement in statements:
            database.connection.execute(statement)
    with closing(Database(path, read_only=read_only)) as database:
        return [finding.message for finding in check_integrity(database, "chunks")]


def test_a_sound_collection(path):
    """Nothing to report, by either kind of connection, also after rows were deleted and added again."""
    assert problems(path) == problems(path, read_only=False) == []
    build_more = [row(f"gutter {number}", "new", number) for number in range(600)]
    build(path, build_more)
    assert problems(path, read_only=False) == []
    gone = "DELETE FROM chunks WHERE document_id = 'new'"
    state = "DELETE FROM qedge_ingest_document WHERE document_id = 'new'"
    assert problems(path, gone, state, read_only=False) == []


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["DELETE FROM chunks_vec WHERE rowid = 1"], ["1 chunks without a vector"]),
        (
            ["DROP TRIGGER chunks_after_delete", "DELETE FROM chunks WHERE document_id = 'd0'"],
            [
                "1 triggers or unique indexes are missing",
                "3 vectors without a chunk",
                "3 full-text entries without a chunk",
                "1 documents with another number of chunks than their state says",
            ],
        ),
        (["DELETE FROM chunks_fts_docsize WHERE id = 1"], ["1 chunks without a full-text entry"]),
        (
            ["DROP INDEX chunks_key", "UPDATE chunks SET key = 'same' WHERE document_id = 'd1'"],
            ["1 triggers or unique indexes are missing", "3 chunks whose hash or key is not that of their text"],
        ),
        (
            ["UPDATE chunks SET ordinal = 7 WHERE document_id = 'd1' AND ordinal = 1"],
            ["1 documents whose ordinals are not 0, 1, 2 and so on"],
        ),
        (
            ["UPDATE chunks SET ordinal = 0 WHERE document_id = 'd1'"],
            ["1 documents whose ordinals are not 0, 1, 2 and so on"],
        ),
        (
            ["UPDATE qedge_ingest_document SET chunk_count = 2 WHERE document_id = 'd2'"],
            ["1 documents with another number of chunks than their state says"],
        ),
        (
            ["DELETE FROM qedge_ingest_document WHERE document_id = 'd2'"],
            ["1 documents with chunks but without a state"],
        ),
        (
            ["UPDATE chunks_vec_rowids SET chunk_offset = 77 WHERE rowid = 1"],
            ["the vector table does not find its vectors where it keeps them"],
        ),
    ],
)
def test_each_disagreement_is_told(path, statements, expected):
    """One line for each, with how many."""
    assert problems(path, *statements) == expected


def test_an_index_out_of_step_with_the_text(path):
    """Text that changed behind the triggers: SQLite's own check is content, the full-text check is not."""
    silent = ["DROP TRIGGER chunks_after_update", "UPDATE chunks SET text = 'other' WHERE ordinal = 0"]
    found = problems(path, *silent)
    assert found[1:] == [
        "3 chunks whose hash or key is not that of their text",
        "the full-text index is out of step with the text",
    ]
    assert problems(path, "INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')") == found[:2]


@pytest.mark.parametrize("bad", [np.zeros(8), np.full(8, np.nan), np.full(8, np.inf)])
def test_vectors_that_spoil_a_search(path, bad):
    """Zero and non-finite vectors are found wherever they came from."""
    with closing(Database(path)) as database:
        database.connection.execute(
            "UPDATE chunks_vec SET embedding = ? WHERE rowid = 4", (bad.astype(np.float32).tobytes(),)
        )
    assert problems(path) == ["1 vectors are zero or not finite"]


def test_a_damaged_index(path):
    """What SQLite finds is passed on."""
    with closing(Database(path)) as database:
        page = database.connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'chunks_content_hash'").get
    content = bytearray(path.read_bytes())
    content[4096 * page - 60 : 4096 * page] = b"x" * 60
    path.write_bytes(content)
    found = problems(path)
    assert found
    assert all(problem.startswith("SQLite: ") for problem in found)


def test_no_collection(path):
    """6002, not an empty list."""
    with closing(Database(path)) as database, pytest.raises(QedgeError) as caught:
        check_integrity(database, "other")
    assert caught.value.code == 6002
