"""Document ids as partition keys."""

from __future__ import annotations

import dagster as dg
import pytest
from dagster._core.definitions.partitions.utils.base import raise_error_on_invalid_partition_key_substring
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from hypothesis import example, given
from hypothesis import strategies as st

from qedge_dagster.errors import QedgeError
from qedge_dagster.orchestration.partitions import (
    add_partitions,
    delete_partitions,
    document_id_of,
    partition_key_of,
)

ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=30) | st.text(".%2Ea/\n", max_size=12)


@given(ANY_TEXT)
@example("")
@example("....")
@example("%")
@example("a%2Eb")
@example("\ud800")
def test_keys_are_reversible_and_allowed(document_id: str) -> None:
    """Every id has a key of its own, which Dagster takes, which can be shown, and which leads back to the id."""
    key = partition_key_of(document_id)
    assert document_id_of(key) == document_id
    assert key
    assert key.isprintable()
    raise_error_on_invalid_partition_key_substring([key])


@given(ANY_TEXT)
def test_keys_that_are_no_documents_are_refused(key: str) -> None:
    """A key is either that of the id it stands for, or refused."""
    try:
        document_id = document_id_of(key)
    except QedgeError:
        return
    assert partition_key_of(document_id) == key


def test_ordinary_ids_are_their_own_keys() -> None:
    """Paths, spaces and letters of any script stay readable."""
    for document_id in ("a.txt", "guides/how to.md", "Überblick/日本語.pdf", "v1..v2.md"):
        assert partition_key_of(document_id) == document_id


def test_many_keys_are_added_at_once(instance: dg.DagsterInstance) -> None:
    """More keys than one statement can hold are registered, and those that exist already stay."""
    keys = [f"{number}.txt" for number in range(2500)]
    add_partitions(instance, "p", keys[:10])
    add_partitions(instance, "p", keys)
    assert sorted(instance.get_dynamic_partitions("p")) == sorted(keys)


def test_partitions_are_kept_during_a_backfill(instance: dg.DagsterInstance) -> None:
    """Nothing is deleted while a backfill is active; afterwards it is."""
    add_partitions(instance, "p", ["a", "b"])
    backfill = PartitionBackfill(
        backfill_id="one",
        status=BulkActionStatus.REQUESTED,
        from_failure=False,
        tags={},
        backfill_timestamp=0.0,
        partition_names=["a"],
    )
    instance.add_backfill(backfill)
    assert delete_partitions(instance, "p", ["a"]) is None
    assert sorted(instance.get_dynamic_partitions("p")) == ["a", "b"]
    instance.update_backfill(backfill.with_status(BulkActionStatus.COMPLETED_SUCCESS))
    assert delete_partitions(instance, "p", ["a"]) == 1
    assert instance.get_dynamic_partitions("p") == ["b"]


@pytest.mark.parametrize("key", ["", "%2E", "a\nb", "%zz"])
def test_hand_made_keys_are_refused(key: str) -> None:
    """Keys that the encoding never makes are 6055, with a remedy."""
    with pytest.raises(QedgeError) as caught:
        document_id_of(key)
    assert caught.value.code == 6055
