"""What a model needs to be told apart and used rightly: length, pooling, prefixes."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, cast

from qedge_dagster.errors import QedgeError

__all__ = ["DEFAULT_PROFILE", "PROFILES", "ModelProfile"]


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
        if self.pooling not in ("mean", "cls"):
            raise QedgeError(6005, f"profile {self.id!r}: pooling must be mean or cls, not {self.pooling!r}")

    @classmethod
    def from_file(cls, path: Path | str) -> ModelProfile:
        """A JSON object with the names of the fields above. Raises `QedgeError` 6005 for anything else."""
        try:
            loaded = json.loads(Path(path).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise QedgeError(6005, f"no profile could be read from {path}: {error}") from error
        if not isinstance(loaded, dict):
            raise QedgeError(6005, f"{path} holds no JSON object")
        given = cast("dict[str, Any]", loaded)
        kinds = {
            field.name: int if field.name in ("dimensions", "max_sequence_length") else str for field in fields(cls)
        }
        if unknown := sorted(given.keys() - kinds):
            raise QedgeError(6005, f"{path}: a profile has no {', '.join(unknown)}; it has {', '.join(kinds)}")
        if missing := [name for name in ("id", "dimensions", "max_sequence_length") if name not in given]:
            raise QedgeError(6005, f"{path} lacks {', '.join(missing)}")
        for name, value in given.items():
            if type(value) is not kinds[name]:  # a JSON true is no dimension
                raise QedgeError(6005, f"{path}: {name} must be {kinds[name].__name__}, not {type(value).__name__}")
        return cls(**given)


#: The trailing spaces are part of the prefixes, as the models' authors publish them.
PROFILES = {
    profile.id: profile
    for profile in (
        ModelProfile("all-minilm-l6-v2-int8", 384, 256),
        ModelProfile("all-minilm-l6-v2-fp32", 384, 256),
        ModelProfile(
            "bge-small-en-v1.5",
            384,
            512,
            "cls",
            query_prefix="Represent this sentence for searching relevant passages: ",
        ),
        ModelProfile("nomic-embed-text-v1.5-int8", 768, 512, "mean", "search_document: ", "search_query: "),
    )
}

DEFAULT_PROFILE = PROFILES["all-minilm-l6-v2-int8"]
