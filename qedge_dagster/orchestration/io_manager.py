"""Stages as data frames, for the assets of others that are made from them."""

from pathlib import Path
from typing import TYPE_CHECKING

from dagster import ConfigurableIOManager, InputContext, OutputContext

from qedge_dagster.artifacts.files import ARTIFACT_STAGES
from qedge_dagster.artifacts.reading import read_stage
from qedge_dagster.errors import QedgeError
from qedge_dagster.orchestration.execution import failure_of
from qedge_dagster.orchestration.partitions import document_id_of
from qedge_dagster.orchestration.resource import IngestionResource

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["IngestionIOManager"]


class IngestionIOManager(ConfigurableIOManager):
    """Loads `extracted_documents`, `document_chunks` or `chunk_embeddings` as a pandas DataFrame:

        @asset(ins={"chunks": AssetIn(notes.key("document_chunks"), input_manager_key="stages")})
        def long_chunks(chunks: pandas.DataFrame) -> pandas.DataFrame:
            return chunks[chunks.token_count > 100]

        Definitions(..., resources={"ingestion": ingestion, "stages": IngestionIOManager(ingestion=ingestion)})

    The rows are those of the input's partitions: of one document, of several, or of all for an asset without
    partitions. A document that is not indexed has none. `embedding` holds numpy arrays of float32. Only reads: the
    stages are written by the engine, and the assets made from them by an IO manager of their own.
    """

    ingestion: IngestionResource

    def load_input(self, context: InputContext) -> "pd.DataFrame":
        stage = context.asset_key.path[-1]
        if stage not in ARTIFACT_STAGES or not context.has_asset_partitions:
            raise TypeError(f"{context.asset_key.to_user_string()} is none of the stages {', '.join(ARTIFACT_STAGES)}")
        # Named so by IngestionTarget; a collection's name holds no slash.
        collection, _, source_id = str(getattr(context.asset_partitions_def, "name", "")).partition("/")
        try:
            table = read_stage(
                *(Path(self.ingestion.database), self.ingestion.artifacts_root(), collection, source_id),
                stage,
                [document_id_of(key) for key in context.asset_partition_keys],
            )
        except QedgeError as error:
            raise failure_of(error) from error
        # Column by column, so that a column is not there twice for longer than its own conversion.
        return table.to_pandas(split_blocks=True, self_destruct=True)

    def handle_output(self, context: OutputContext, obj: object) -> None:  # noqa: ARG002 - Dagster's signature
        raise TypeError("IngestionIOManager only reads: use it as input_manager_key, not as io_manager_key")
