"""What a model needs to be told apart and used rightly: length, pooling, prefixes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from qedge_dagster.errors import QedgeError

__all__ = ["DEFAULT_PROFILE", "ModelProfile", "PROFILES"]


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """Facts of an embedding model. `max_sequence_length` counts tokens, special tokens included."""

    id: str
    dimensions: int
    max_sequence_length: int
    pooling: Literal["mean", "cls"] = "mean"
    document_prefix: str = ""
    query_prefix: str = ""

    def __post_init__(self) -> None:
        if self.dimensions <= 0 or self.max_sequence_length <= 0:
            raise QedgeError(6005, f"profile {self.id!r}: dimensions and max_sequence_length must be positive")
        if not self.id or any(ord(c) < 32 for c in self.id + self.document_prefix + self.query_prefix):
            raise QedgeError(6005, f"profile {self.id!r}: id and prefixes may hold no control characters")


#: The trailing spaces are part of the prefixes, as the models' authors publish them.
PROFILES = {
    profile.id: profile
    for profile in (
        ModelProfile("all-minilm-l6-v2-int8", 384, 256),
        ModelProfile("all-minilm-l6-v2-fp32", 384, 256),
        ModelProfile(
            "bge-small-en-v1.5", 384, 512, "cls", query_prefix="Represent this sentence for searching relevant passages: "
        ),
        ModelProfile("nomic-embed-text-v1.5-int8", 768, 512, "mean", "search_document: ", "search_query: "),
    )
}

DEFAULT_PROFILE = PROFILES["all-minilm-l6-v2-int8"]
