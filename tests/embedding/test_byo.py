"""Functions of the user's own as embedders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qedge_dagster.chunking.tokenizer import HuggingFaceTokenizer
from qedge_dagster.embedding import CallableEmbedder, Embedder, ModelProfile, model_identity
from qedge_dagster.errors import QedgeError
from tests.embedding.conftest import write_folder

PROFILE = ModelProfile("mine", 2, 16, document_prefix="passage: ", query_prefix="query: ")


@pytest.fixture
def tokenizer(tmp_path: Path) -> HuggingFaceTokenizer:
    return HuggingFaceTokenizer.from_file(write_folder(tmp_path) / "vocab.txt")


class Recorder:
    """Returns `result` whatever it is asked, and remembers what it was asked."""

    def __init__(self, result: object) -> None:
        self.result = result
        self.asked: list[list[str]] = []

    def __call__(self, texts: list[str]) -> object:
        self.asked.append(texts)
        return self.result


@pytest.mark.parametrize(
    "result", [[[3, 4], [0, 2]], [(3.0, 4.0), (0.0, 2.0)], np.array([[3, 4], [0, 2]], dtype=np.float16)]
)
def test_lists_and_arrays(tokenizer: HuggingFaceTokenizer, result: object) -> None:
    """Lists, tuples and arrays of any number type become float32 vectors of unit length."""
    batch = CallableEmbedder(Recorder(result), PROFILE, tokenizer).embed_documents(["red", "green blue"])  # type: ignore[arg-type]
    assert batch.vectors.dtype == np.float32
    np.testing.assert_allclose(batch.vectors, [[0.6, 0.8], [0, 1]], rtol=1e-6)


def test_prefixes_and_tokens(tokenizer: HuggingFaceTokenizer) -> None:
    """The function gets each text with its prefix, once, in one call; tokens count prefix and special tokens."""
    function = Recorder([[1, 0], [0, 1]])
    embedder = CallableEmbedder(function, PROFILE, tokenizer)  # type: ignore[arg-type]
    assert embedder.embed_documents(["red", "green blue"]).tokens == 5 + 6
    function.result = [[2, 0]]
    assert embedder.embed_query("red").tolist() == [1, 0]
    assert function.asked == [["passage: red", "passage: green blue"], ["query: red"]]


def test_nothing_is_not_asked(tokenizer: HuggingFaceTokenizer) -> None:
    """No texts: the function is not called."""
    function = Recorder([])
    assert CallableEmbedder(function, PROFILE, tokenizer).embed_documents([]).vectors.shape == (0, 2)  # type: ignore[arg-type]
    assert function.asked == []


@pytest.mark.parametrize(
    ("result", "code", "reason"),
    [
        ([[1, 2, 3], [4, 5, 6]], 6006, "returned 3 dimensions, profile 'mine' says 2"),
        ([[1, 2]], 6206, r"shape \(1, 2\) for 2 texts"),
        ([1, 2], 6206, r"shape \(2,\) for 2 texts"),
        ([[1, 2], [3]], 6206, "no array of numbers"),
        ("vectors", 6206, "no array of numbers"),
        (None, 6206, r"shape \(\) for 2 texts"),
        ([["a", "b"], ["c", "d"]], 6206, "no array of numbers"),
    ],
)
def test_wrong_results(tokenizer: HuggingFaceTokenizer, result: object, code: int, reason: str) -> None:
    """A wrong dimension is 6006; a wrong count or shape, or no numbers at all, is 6206. No text is in the message."""
    embedder = CallableEmbedder(Recorder(result), PROFILE, tokenizer)  # type: ignore[arg-type]
    with pytest.raises(QedgeError, match=reason) as caught:
        embedder.embed_documents(["red", "green"])
    assert caught.value.code == code
    assert "red" not in caught.value.message


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf"), 1e300])
def test_impossible_vectors_pass_without_a_warning(tokenizer: HuggingFaceTokenizer, value: float) -> None:
    """Zero and non-finite vectors are left for the writer to refuse: they stay so, and nothing warns."""
    embedder = CallableEmbedder(lambda texts: [[value, value]] * len(texts), PROFILE, tokenizer)
    vector = embedder.embed_query("red")
    if value == 0:
        assert vector.tolist() == [0, 0]
    else:
        assert not np.isclose(np.linalg.norm(vector), 1)


@pytest.mark.filterwarnings("error")
def test_large_numbers_are_brought_to_unit_length(tokenizer: HuggingFaceTokenizer) -> None:
    """Numbers whose squares overflow float32 are no zero vector."""
    vector = CallableEmbedder(lambda _: [[3e30, 4e30]], PROFILE, tokenizer).embed_query("red")
    np.testing.assert_allclose(vector, [0.6, 0.8], rtol=1e-6)


def test_an_exception_passes_through(tokenizer: HuggingFaceTokenizer) -> None:
    """What the function raises is the caller's to see."""

    def fail(_: list[str]) -> list[list[float]]:
        raise TimeoutError("no answer")

    with pytest.raises(TimeoutError, match="no answer"):
        CallableEmbedder(fail, PROFILE, tokenizer).embed_documents(["red"])


def test_identity(tokenizer: HuggingFaceTokenizer) -> None:
    """The fingerprint stands for the model; without one the profile's id does."""
    function = Recorder([[1, 0]])
    anonymous: Embedder = CallableEmbedder(function, PROFILE, tokenizer)  # type: ignore[arg-type]
    first = CallableEmbedder(function, PROFILE, tokenizer, fingerprint="v1")  # type: ignore[arg-type]
    second = CallableEmbedder(function, PROFILE, tokenizer, fingerprint="v2")  # type: ignore[arg-type]
    assert anonymous.model_hash is None
    assert len({model_identity(embedder) for embedder in (anonymous, first, second)}) == 3


def test_what_is_refused_at_once(tokenizer: HuggingFaceTokenizer) -> None:
    """No tokenizer is 6001, an unprintable fingerprint 6005."""
    with pytest.raises(QedgeError) as caught:
        CallableEmbedder(Recorder([]), PROFILE, None)  # type: ignore[arg-type]
    assert caught.value.code == 6001
    with pytest.raises(QedgeError) as caught:
        CallableEmbedder(Recorder([]), PROFILE, tokenizer, fingerprint="a\x1fb")  # type: ignore[arg-type]
    assert caught.value.code == 6005
