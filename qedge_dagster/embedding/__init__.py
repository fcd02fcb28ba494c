"""Texts → vectors: model profiles, the ONNX embedder, and functions of your own.

The embedders are loaded on first use, so that importing this package imports no model runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qedge_dagster.embedding.base import Embedder, EmbeddingBatch, model_identity
from qedge_dagster.embedding.profiles import DEFAULT_PROFILE, PROFILES, ModelProfile
from qedge_dagster.lazy import names_of

if TYPE_CHECKING:
    from qedge_dagster.embedding.byo import CallableEmbedder
    from qedge_dagster.embedding.onnx import OnnxEmbedder

__all__ = [
    "DEFAULT_PROFILE",
    "PROFILES",
    "CallableEmbedder",
    "Embedder",
    "EmbeddingBatch",
    "ModelProfile",
    "OnnxEmbedder",
    "default_embedder",
    "model_identity",
]

_HOMES = {"CallableEmbedder": "byo", "OnnxEmbedder": "onnx"}


def default_embedder() -> OnnxEmbedder:
    """The embedder of who names none. Raises `QedgeError` 6208 where the extra `[onnx]` is not installed."""
    from qedge_dagster.embedding.onnx import OnnxEmbedder

    return OnnxEmbedder.default()


__getattr__ = names_of(__name__, _HOMES)
