"""A model folder of a few hundred bytes, and the real default model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from qedge_dagster.embedding import OnnxEmbedder
from tests.embedding.onnx_file import write_model

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "green", "blue", "passage", "query", ":"]
PROFILE = {"id": "tiny", "dimensions": len(WORDS), "max_sequence_length": 8}


def write_folder(folder: Path, profile: dict[str, object] | None = PROFILE, **model: object) -> Path:
    """A model that gives each token a dimension of its own, so that a vector shows what the model was fed."""
    folder.mkdir(parents=True, exist_ok=True)
    write_model(folder / "model.onnx", np.eye(len(WORDS), dtype=np.float32), **model)  # type: ignore[arg-type]
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", "utf-8")
    if profile is not None:
        (folder / "profile.json").write_text(json.dumps(profile), "utf-8")
    return folder


def fed(vector: np.ndarray) -> dict[str, float]:
    """The tokens in a vector of the tiny model, with their weights."""
    return {WORDS[index]: round(float(vector[index]), 4) for index in np.flatnonzero(vector)}


@pytest.fixture(scope="session")
def minilm() -> OnnxEmbedder:
    return OnnxEmbedder.default()
