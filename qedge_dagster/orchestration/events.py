"""What the engine says, as asset events of Dagster.

The events are logged, one by one and for one partition each, and none is yielded: what Dagster makes of yielded ones in
a run over a range of partitions shares one data version, and covers the partitions that were not processed as well.
Nothing is logged for a document that did not change, since each event costs Dagster milliseconds; only in a run for
selected partitions it is, because a backfill waits for every one of them. Those of one document are stored at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from dagster import AssetKey, AssetMaterialization, AssetObservation, DagsterEventType, OpExecutionContext
from dagster import MetadataValue as Value

from qedge_dagster.documents import ExtractedDocument
from qedge_dagster.errors import Failure
from qedge_dagster.hashing import hash_fields
from qedge_dagster.orchestration.event_log import event_batch
from qedge_dagster.orchestration.partitions import add_partitions, partition_key_of
from qedge_dagster.orchestration.target import CODE_VERSION, STAGES, IngestionTarget, Stage
from qedge_dagster.pipeline.diff import chunks_version
from qedge_dagster.pipeline.events import (
    DocumentFailed,
    DocumentIndexed,
    DocumentRemoved,
    DocumentSkipped,
    Event,
    PruneWithheld,
    RunFinished,
    RunStarted,
)
from qedge_dagster.state import DocumentRow, StageVersions

__all__ = ["AssetEvents", "Recorded"]

_PARTITIONS_PENDING = 900

# Of a document without content: unsupported, without text, or gone.
_EMPTY = StageVersions(
    ExtractedDocument("", "", 0, "", "", ()).version(), chunks_version(()), hash_fields(()), hash_fields(())
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the database holds of a document."""

    row: DocumentRow | None
    versions: StageVersions | None


class AssetEvents:
    """Logs the events of one run. `selected` are the documents of the run's partitions, None where it has no selection;
    `recorded` looks a document up in the database."""

    def __init__(
        self,
        context: OpExecutionContext,
        target: IngestionTarget,
        selected: Collection[str] | None,
        recorded: Callable[[str], Recorded],
        *,
        previews: bool,
    ) -> None:
        self._context = context
        self._target = target
        self._selected = selected is not None
        self._silent = set(selected or ())
        self._recorded = recorded
        self._previews = previews
        self._new_keys: list[str] = []
        self._listing_doubtful = False
        self.changed = False
        self.removed: list[str] = []

    def log(self, event: Event) -> None:
        if isinstance(event, RunFinished):
            if event.result.outcome == "completed":
                self._vanished()
            self.flush()
            return
        with event_batch(self._context.instance):
            self._log(event)

    def _log(self, event: Event) -> None:
        if isinstance(event, (DocumentSkipped, DocumentIndexed)):
            self._silent.discard(event.document_id if isinstance(event, DocumentSkipped) else event.result.document_id)
        if isinstance(event, DocumentIndexed):
            self._indexed(event)
        elif isinstance(event, DocumentSkipped):
            if self._selected:
                self._unchanged(event)
        elif isinstance(event, DocumentFailed):
            self._silent.discard(event.result.document_id)
            self._failed(event)
        elif isinstance(event, DocumentRemoved):
            self.changed = True
            self.removed.append(event.document_id)
            self._context.log.info("Removed %s: %d chunks.", event.document_id, event.chunks_removed)
        elif isinstance(event, PruneWithheld):
            self._listing_doubtful = True
            self._context.log.warning("Kept %d document(s) that were not seen: %s.", event.documents, event.reason)
        elif isinstance(event, RunStarted):
            self._context.log.info("Ingestion run %s.", event.run_id)

    def flush(self) -> None:
        """Register the partitions that events were logged for."""
        add_partitions(self._context.instance, self._target.partitions_name, self._new_keys)
        self._new_keys.clear()

    # one kind of event each

    def _indexed(self, event: DocumentIndexed) -> None:
        partition = self._partition(event.result.document_id)
        self._observe_source(partition, event.source_hash, {"size_bytes": event.size_bytes})
        before = event.before
        result, seconds = event.result, event.seconds
        facts: dict[Stage, dict[str, Any]] = {
            "extracted_documents": {
                "extractor": result.extractor_id,
                "pages": event.page_count,
                "seconds": _rounded(seconds.get("hash", 0.0) + seconds.get("extract", 0.0)),
                "warnings": list(event.warnings) or None,
            },
            "document_chunks": {
                "chunks": event.chunk_count,
                "chunks_added": result.chunks_added,
                "chunks_removed": result.chunks_removed,
                "chunks_unchanged": result.chunks_unchanged,
                "chunks_repaired": result.chunks_repaired,
                "seconds": _rounded(seconds.get("chunk", 0.0)),
            },
            "chunk_embeddings": {
                "texts_embedded": result.texts_embedded,
                "tokens_embedded": result.tokens_embedded,
                "vectors_reused": result.chunks_added - result.texts_embedded,
                "seconds": _rounded(seconds.get("embed", 0.0)),
            },
            "collection": {"chunks": event.chunk_count, "seconds": _rounded(seconds.get("switch", 0.0))},
        }
        for stage, path in event.artifacts.items():
            facts[stage]["artifact"] = Value.path(path)
        if self._previews:
            facts["extracted_documents"]["preview"] = Value.text(event.preview)
        # A stage is made anew when its input has changed; where it comes out the same, the change ends there. In a
        # selection every stage is, as the backfill waits for it.
        input_changed = True
        versions = _by_stage(event.versions)
        old = _by_stage(before) if before is not None and not self._selected else {}
        input_version, input_key = event.source_hash, self._target.source_key
        for stage in STAGES:
            version = versions[stage]
            changed = version != old.get(stage)
            if changed or input_changed:
                self._materialize(
                    stage, partition, version, input_key, input_version, {"outcome": "indexed", **facts[stage]}
                )
            input_changed, input_version, input_key = changed, version, self._target.key(stage)

    def _unchanged(self, event: DocumentSkipped) -> None:
        recorded = self._recorded(event.document_id)
        row = recorded.row
        if row is not None and row.status == "failed":
            # Settled by its bytes, and not tried again: it is no less failed for that.
            partition = self._partition(event.document_id)
            self._observe_outcome(partition, "failed", {"error": row.error})
            return
        outcome = "unchanged" if row is None or row.status == "indexed" else row.status
        self._materialize_all(event.document_id, event.source_hash, recorded.versions, outcome)

    def _failed(self, event: DocumentFailed) -> None:
        document_id, outcome = event.result.document_id, event.result.outcome
        facts = _failure_facts(event.failure)
        if outcome == "failed":
            partition = self._partition(document_id)
            if event.source_hash is not None:
                self._observe_source(partition, event.source_hash, {})
            self._observe_outcome(partition, outcome, facts)
        else:
            versions = self._recorded(document_id).versions
            self._materialize_all(document_id, event.source_hash, versions, outcome, facts)

    def _vanished(self) -> None:
        """Selected, and neither in the source nor in the collection any more."""
        for document_id in sorted(self._silent):
            with event_batch(self._context.instance):
                if self._listing_doubtful:
                    self._observe_outcome(self._partition(document_id), "not_seen", {})
                else:
                    self._materialize_all(document_id, None, None, "vanished")

    # the events themselves

    def _materialize_all(
        self,
        document_id: str,
        source_hash: bytes | None,
        versions: StageVersions | None,
        outcome: str,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        partition = self._partition(document_id)
        source_version = source_hash or _EMPTY.extracted
        self._observe_source(partition, source_version, {})
        input_version, input_key = source_version, self._target.source_key
        for stage, version in _by_stage(versions or _EMPTY).items():
            self._materialize(
                stage, partition, version, input_key, input_version, {"outcome": outcome, **(facts or {})}
            )
            input_version, input_key = version, self._target.key(stage)

    def _materialize(
        self,
        stage: Stage,
        partition: str,
        version: bytes,
        input_key: AssetKey,
        input_version: bytes,
        metadata: Mapping[str, Any],
    ) -> None:
        is_source = input_key == self._target.source_key
        kind = DagsterEventType.ASSET_OBSERVATION if is_source else DagsterEventType.ASSET_MATERIALIZATION
        pointers = self._context.instance.get_latest_storage_id_by_partition(input_key, kind, {partition})
        name = input_key.to_user_string()
        tags = {
            "dagster/data_version": version.hex(),
            "dagster/data_version_is_user_provided": "true",
            "dagster/code_version": CODE_VERSION,
            f"dagster/input_data_version/{name}": input_version.hex(),
        }
        if partition in pointers:  # else the input's events were wiped
            tags[f"dagster/input_event_pointer/{name}"] = str(pointers[partition])
        self._context.log_event(
            AssetMaterialization(self._target.key(stage), partition=partition, metadata=_given(metadata), tags=tags)
        )
        self.changed = True

    def _observe_source(self, partition: str, source_hash: bytes, metadata: Mapping[str, Any]) -> None:
        tags = {"dagster/data_version": source_hash.hex()}
        self._context.log_event(
            AssetObservation(self._target.source_key, partition=partition, metadata=_given(metadata), tags=tags)
        )

    def _observe_outcome(self, partition: str, outcome: str, metadata: Mapping[str, Any]) -> None:
        self._context.log_event(
            AssetObservation(
                self._target.key("collection"),
                partition=partition,
                metadata={"outcome": outcome, **_given(metadata)},
            )
        )
        self.changed = True

    def _partition(self, document_id: str) -> str:
        key = partition_key_of(document_id)
        self._new_keys.append(key)
        if len(self._new_keys) >= _PARTITIONS_PENDING:
            self.flush()
        return key


def _by_stage(versions: StageVersions) -> dict[Stage, bytes]:
    return {
        "extracted_documents": versions.extracted,
        "document_chunks": versions.chunks,
        "chunk_embeddings": versions.embeddings,
        "collection": versions.collection_rows,
    }


def _failure_facts(failure: Failure) -> dict[str, Any]:
    return {
        "code": Value.int(failure.code),
        "error": f"{failure.code} {failure.name}: {failure.message}",
        "remedy": failure.remedy,
    }


def _given(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if value is not None}


def _rounded(seconds: float) -> float:
    return round(seconds, 4)
