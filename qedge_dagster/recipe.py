"""The recipe: everything a vector depends on besides the document's bytes. Another recipe makes a document dirty."""

from __future__ import annotations

from qedge_dagster.chunking.base import Chunker
from qedge_dagster.embedding.base import Embedder
from qedge_dagster.errors import QedgeError
from qedge_dagster.hashing import hash_fields

__all__ = ["Recipe"]

_RECIPE_SCHEMA = 1


class Recipe:
    """Recipe hashes of one pipeline, by the fingerprint of the extractor that a document selects: so a new version of
    one extractor makes no other's documents dirty."""

    def __init__(self, embedder: Embedder, chunker: Chunker, distance: str) -> None:
        profile, tokenizer = embedder.profile, embedder.tokenizer
        if tokenizer is None:
            raise QedgeError(6001, f"the embedder of profile {profile.id!r} has no tokenizer")
        self._before = (
            _RECIPE_SCHEMA,
            embedder.model_hash or profile.id,
            profile.dimensions,
            profile.pooling,
            profile.document_prefix,
            profile.query_prefix,
            tokenizer.id,
            profile.max_sequence_length,
            tokenizer.special_token_overhead,
            chunker.id,
            chunker.version,
            *chunker.recipe_fields(),
        )
        self._distance = distance
        self._hashes: dict[str, bytes] = {}

    def hash(self, extractor_fingerprint: str = "") -> bytes:
        """16 bytes; with the empty fingerprint, the part that all documents share."""
        if extractor_fingerprint not in self._hashes:
            fields = (*self._before, extractor_fingerprint, self._distance)
            self._hashes[extractor_fingerprint] = hash_fields(fields)
        return self._hashes[extractor_fingerprint]
