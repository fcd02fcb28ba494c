"""A change of model: another collection is built beside the old one, and takes its place in one transaction.

While it is prepared it is a collection like any other, with tables and state rows of its own, so that budgets, resume
and crash safety are those of ordinary runs; and the old one goes on answering.
"""

from __future__ import annotations

from dataclasses import replace

from qedge_dagster.collection.connection import Database
from qedge_dagster.collection.schema import CollectionSpec, copy_rows, create_collection, drop_collection, read_spec
from qedge_dagster.errors import QedgeError
from qedge_dagster.state import ModelRecord, StateStore

__all__ = ["MAX_NAME", "SUFFIX", "abandon_rebuild", "prepare_rebuild", "replace_when_ready"]

#: The name of the collection that is to replace another ends so.
SUFFIX = "_rebuild"

#: Longest name of a collection, so that the rebuild's tables can be named after it.
MAX_NAME = 60 - len(SUFFIX)


def prepare_rebuild(database: Database, spec: CollectionSpec, model: ModelRecord) -> StateStore:
    """Make the collection that is to replace `spec.name`, or find it as an earlier run left it. Returns its state."""
    state = StateStore(database, spec.name + SUFFIX)
    with database.atomic():
        exists = read_spec(database, state.collection) is not None
        started_with = state.model()
        if exists and (started_with is None or started_with.identity != model.identity):
            drop_collection(database, state.collection)
            state.forget()
            exists = False
        if not exists:
            create_collection(database, replace(spec, name=state.collection))
            state.put_model(model)
    return state


def abandon_rebuild(database: Database, old: StateStore) -> None:
    """Drop what an earlier rebuild with another model has left: the collection has the wanted model already."""
    state = StateStore(database, old.collection + SUFFIX)
    if read_spec(database, state.collection) is not None:
        with database.atomic():
            drop_collection(database, state.collection)
            state.forget()


def replace_when_ready(
    database: Database, spec: CollectionSpec, old: StateStore, new: StateStore, source_id: str
) -> list[str]:
    """Note that `source_id` is rebuilt. If it was the last source, let the new collection take the old one's place.

    Returns the sources that are still to be rebuilt; empty once the old collection is replaced.
    """
    with database.atomic():
        model = new.model()
        if model is None:
            raise QedgeError(6012, f"the rebuild of {old.collection} was given up or finished by another run")
        new.put_rebuilt(source_id)
        left = [source for source in old.source_ids() if not new.is_rebuilt(source)]
        if not left:
            drop_collection(database, old.collection)
            create_collection(database, spec)
            copy_rows(database, new.collection, spec.name)
            drop_collection(database, new.collection)
            old.take_over(new)
            old.put_model(model)
    return left
