"""What one set of ingestion assets is about: a source, and the collection it goes into."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from dagster import AssetKey, AssetSpec, DynamicPartitionsDefinition

from qedge_dagster.hashing import hash_fields
from qedge_dagster.sources import Source

__all__ = ["STAGES", "IngestionTarget", "Stage"]

Stage = Literal["extracted_documents", "document_chunks", "chunk_embeddings", "collection"]

#: In the order in which one is made of the other.
STAGES: tuple[Stage, ...] = ("extracted_documents", "document_chunks", "chunk_embeddings", "collection")

#: Raised where a stage's output changes without any of the versions that the recipe holds.
CODE_VERSION = "1"

_DESCRIPTIONS: dict[Stage, str] = {
    "extracted_documents": "Normalised text, blocks and metadata of each document.",
    "document_chunks": "Ordered chunks of each document, with offsets, heading path and token count.",
    "chunk_embeddings": "One vector per chunk.",
    "collection": "The rows in the database: text, vectors and full-text index.",
}


@dataclass(frozen=True)
class IngestionTarget:
    """Shared by the assets, the sensor, the schedule, the jobs and the checks.

    `name` tells targets of one code location apart where several sources go into one collection. `resource_key` is the
    key of their `IngestionResource`: targets with different databases or models need different ones.
    """

    source: Source
    collection: str = "chunks"
    name: str | None = None
    resource_key: str = "ingestion"

    @property
    def prefix(self) -> list[str]:
        return [self.collection, *([self.name] if self.name else [])]

    @property
    def identifier(self) -> str:
        """For the names of ops, jobs and sensors: letters, digits and underscores."""
        return "_".join("".join(c if c.isascii() and c.isalnum() else "_" for c in part) for part in self.prefix)

    @property
    def partitions_name(self) -> str:
        return f"{self.collection}/{self.source.source_id}"

    @cached_property
    def partitions_def(self) -> DynamicPartitionsDefinition:
        return DynamicPartitionsDefinition(name=self.partitions_name)

    @property
    def run_tags(self) -> dict[str, str]:
        """By which every run of this target is known; a hash, as a source's id may be too long for a tag's value."""
        return {"qedge/target": hash_fields((self.collection, self.source.source_id)).hex()}

    @property
    def source_key(self) -> AssetKey:
        return AssetKey([*self.prefix, "source_documents"])

    def key(self, stage: Stage) -> AssetKey:
        return AssetKey([*self.prefix, stage])

    @property
    def source_spec(self) -> AssetSpec:
        """The bytes at the source: external, only observed."""
        return AssetSpec(
            self.source_key,
            description="The documents as they lie at the source.",
            group_name=self.identifier,
            partitions_def=self.partitions_def,
        )

    @property
    def stage_specs(self) -> list[AssetSpec]:
        inputs = [self.source_key, *map(self.key, STAGES)]
        return [
            AssetSpec(
                self.key(stage),
                deps=[before],
                description=_DESCRIPTIONS[stage],
                group_name=self.identifier,
                code_version=CODE_VERSION,
                skippable=True,
                partitions_def=self.partitions_def,
            )
            for stage, before in zip(STAGES, inputs, strict=False)
        ]
