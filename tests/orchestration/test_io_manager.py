"""Downstream assets that load the stages as data frames, on a real instance."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from qedge_dagster.collection import Collection
from qedge_dagster.collection.connection import Database
from qedge_dagster.orchestration import BudgetConfig, IngestionIOManager
from tests.orchestration.support import CountingResource, Location
from tests.pipeline.support import prose, write

STAGES = ("extracted_documents", "document_chunks", "chunk_embeddings")


class Downstream:
    """Assets that keep what they were given."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self.given: dict[str, pd.DataFrame] = {}
        target, given = location.target, self.given
        ins = {s: dg.AssetIn(target.key(s), input_manager_key="stages") for s in STAGES}  # type: ignore[arg-type]

        @dg.asset(ins=ins, partitions_def=target.partitions_def, backfill_policy=dg.BackfillPolicy.single_run())
        def by_document(**frames: pd.DataFrame) -> None:
            given.update(frames)

        @dg.asset(ins=ins)
        def everything(**frames: pd.DataFrame) -> None:
            given.update(frames)

        ingestion = location.resource()
        self.definitions = dg.Definitions(
            assets=[by_document, everything, *location.definitions.assets],  # type: ignore[misc]
            jobs=[dg.define_asset_job(name, selection=[name]) for name in ("by_document", "everything")],
            resources={"ingestion": ingestion, "stages": IngestionIOManager(ingestion=ingestion)},
        )

    def load(self, job: str, **settings: Any) -> dict[str, pd.DataFrame]:
        self.given.clear()
        definition = self.definitions.resolve_job_def(job)
        assert definition.execute_in_process(instance=self.location.instance, **settings).success
        return dict(self.given)

    def check(self, frames: dict[str, pd.DataFrame], document_ids: set[str]) -> None:
        """The frames hold the collection's rows of these documents."""
        with Collection.open(self.location.database, "notes") as collection:
            chunks = [chunk for chunk in collection.chunks() if chunk.document_id in document_ids]
        frame = frames["document_chunks"]
        for column in ("key", "document_id", "ordinal", "text", "content_hash", "char_start", "char_end", "page"):
            assert frame[column].tolist() == [getattr(chunk, column) for chunk in chunks], column
        assert frame["heading_path"].tolist() == [chunk.breadcrumb for chunk in chunks]
        vectors = frames["chunk_embeddings"]
        assert vectors["key"].tolist() == [chunk.key for chunk in chunks]
        with closing(Database(self.location.database, read_only=True)) as opened:
            stored = dict(
                opened.connection.execute(
                    "SELECT key, embedding FROM notes AS c JOIN notes_vec AS v ON v.rowid = _rowid"
                )
            )
        for key, vector in zip(vectors["key"], vectors["embedding"], strict=True):
            assert vector.dtype == np.float32
            assert vector.tobytes() == stored[key]
        texts = frames["extracted_documents"].set_index("document_id")
        assert set(texts.index) == document_ids
        for row in frame.itertuples():
            assert texts["text"][row.document_id][row.char_start : row.char_end] == row.text


@pytest.fixture
def downstream(tmp_path: Path, instance: dg.DagsterInstance) -> Downstream:
    location = Location(tmp_path, instance, BudgetConfig())
    write(location.folder, {f"{n}.txt": "\n\n".join(prose(n, 6)) for n in range(4)})
    write(location.folder, {"broken.txt": bytes(500), "photo.jpeg": b"\xff\xd8"})
    assert location.run().success
    return Downstream(location)


def test_one_partition(downstream: Downstream) -> None:
    """A partition of a downstream asset gets the rows of its document."""
    downstream.check(downstream.load("by_document", partition_key="2.txt"), {"2.txt"})


def test_a_range(downstream: Downstream) -> None:
    """A run over a range gets the rows of all its documents."""
    tags = {"dagster/asset_partition_range_start": "0.txt", "dagster/asset_partition_range_end": "2.txt"}
    downstream.check(downstream.load("by_document", tags=tags), {"0.txt", "1.txt", "2.txt"})


def test_all(downstream: Downstream) -> None:
    """An asset without partitions gets every document that is indexed."""
    downstream.check(downstream.load("everything"), {"0.txt", "1.txt", "2.txt", "3.txt"})


@pytest.mark.parametrize("document", ["broken.txt", "photo.jpeg", "3.txt"])
def test_what_is_not_indexed_has_no_rows(downstream: Downstream, document: str) -> None:
    """Failed, unsupported or removed: an empty frame with the columns and types of any other."""
    full = downstream.load("by_document", partition_key="0.txt")
    (downstream.location.folder / "3.txt").unlink()
    downstream.location.run()
    frames = downstream.load("by_document", partition_key=document)
    for stage in STAGES:
        assert len(frames[stage]) == 0
        assert list(frames[stage].columns) == list(full[stage].columns)


def test_without_artefacts_rows_come_from_the_database(downstream: Downstream) -> None:
    """The same frames of chunks and vectors; for the text, an error that says what to do."""
    before = downstream.load("everything")
    shutil.rmtree(downstream.location.root / "t.db.artifacts")
    with pytest.raises(dg.Failure) as caught:
        downstream.load("everything")
    assert "ingest the document again" in str(caught.value.description)
    ins = {"chunks": "document_chunks", "vectors": "chunk_embeddings"}
    given: dict[str, pd.DataFrame] = {}
    target = downstream.location.target

    @dg.asset(ins={k: dg.AssetIn(target.key(v), input_manager_key="stages") for k, v in ins.items()})  # type: ignore[arg-type]
    def rest(**frames: pd.DataFrame) -> None:
        given.update(frames)

    ingestion = downstream.location.resource()
    resources = {"stages": IngestionIOManager(ingestion=ingestion), "ingestion": ingestion}
    definitions = dg.Definitions(
        [rest, *downstream.location.definitions.assets],  # type: ignore[misc]
        jobs=[dg.define_asset_job("rest", selection=[rest])],
        resources=resources,
    )
    assert definitions.resolve_job_def("rest").execute_in_process(instance=downstream.location.instance).success
    pd.testing.assert_frame_equal(given["chunks"], before["document_chunks"])
    pd.testing.assert_frame_equal(given["vectors"], before["chunk_embeddings"])


def test_metadata_of_the_events(downstream: Downstream) -> None:
    """Each stage's materialisation says where its artefact is, and the first how the text begins."""
    for stage in STAGES:
        metadata = downstream.location.materialization(stage, "1.txt").metadata
        assert Path(str(metadata["artifact"].value)).is_file()
    preview = downstream.location.materialization("extracted_documents", "1.txt").metadata["preview"].value
    assert preview == "\n\n".join(prose(1, 6))[:300]


class BareLocation(Location):
    """Without artefacts and previews."""

    def resource(self) -> CountingResource:
        return CountingResource(database=str(self.database), artifacts="", previews=False)


def test_switched_off(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    """No file is written, and no text is in the metadata."""
    location = BareLocation(tmp_path, instance, BudgetConfig())
    write(location.folder, {"a.txt": "some words"})
    assert location.run().success
    assert not (tmp_path / "t.db.artifacts").exists()
    for stage in STAGES:
        assert not {"artifact", "preview"} & set(location.materialization(stage, "a.txt").metadata)


def test_the_prune_job_sweeps(downstream: Downstream) -> None:
    """What belongs to no current version goes."""
    folder = downstream.location.root / "t.db.artifacts" / "notes" / "document_chunks"
    name = sorted(path.name for path in folder.iterdir())[0]
    left = folder / f"{name.partition('-')[0]}-{'0' * 32}-{'0' * 32}.parquet"
    left.touch()
    assert downstream.location.run("notes_prune").success
    assert not left.exists()
    assert (folder / name).exists()


def test_it_only_reads(downstream: Downstream) -> None:
    """As the IO manager of an output it refuses, and says what it is for."""

    @dg.asset(io_manager_key="stages")
    def written() -> int:
        return 1

    resources = {"stages": IngestionIOManager(ingestion=downstream.location.resource())}
    with pytest.raises(TypeError, match="input_manager_key"):
        dg.materialize([written], instance=downstream.location.instance, resources=resources)
