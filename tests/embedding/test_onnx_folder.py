"""Models given as a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qedge_dagster.chunking.base import ChunkBudget, ChunkingOptions
from qedge_dagster.chunking.tokenizer import HuggingFaceTokenizer
from qedge_dagster.embedding import ModelProfile, OnnxEmbedder, model_identity
from qedge_dagster.embedding.onnx import _Graph  # pyright: ignore[reportPrivateUsage]
from qedge_dagster.errors import QedgeError
from tests.embedding.conftest import PROFILE, WORDS, fed, write_folder
from tests.embedding.onnx_file import INPUTS, INT32, write_model

CLS, RED = WORDS.index("[CLS]"), WORDS.index("red")


@pytest.fixture(scope="module")
def long_model(tmp_path_factory: pytest.TempPathFactory) -> OnnxEmbedder:
    return OnnxEmbedder.from_folder(
        write_folder(tmp_path_factory.mktemp("model"), PROFILE | {"max_sequence_length": 512})
    )


def test_mean_pooling(tmp_path: Path) -> None:
    """Mean pooling averages over the text's own tokens, [CLS] and [SEP] included, padding left out."""
    embedder = OnnxEmbedder.from_folder(write_folder(tmp_path))
    short, long = embedder.embed_documents(["red", "red red blue green"]).vectors
    assert fed(short) == {"[CLS]": 0.5774, "[SEP]": 0.5774, "red": 0.5774}
    assert fed(long) == {"[CLS]": 0.3536, "[SEP]": 0.3536, "red": 0.7071, "blue": 0.3536, "green": 0.3536}


def test_cls_pooling(tmp_path: Path) -> None:
    """CLS pooling takes the first token's vector and nothing else."""
    embedder = OnnxEmbedder.from_folder(write_folder(tmp_path, PROFILE | {"pooling": "cls"}))
    assert [fed(vector) for vector in embedder.embed_documents(["red", "green blue"]).vectors] == [{"[CLS]": 1.0}] * 2


def test_prefixes(tmp_path: Path) -> None:
    """The document prefix goes before documents once, the query prefix before queries only; both are counted."""
    prefixes = {"document_prefix": "passage: ", "query_prefix": "query: "}
    embedder = OnnxEmbedder.from_folder(write_folder(tmp_path, PROFILE | prefixes))
    batch = embedder.embed_documents(["red"])
    assert fed(batch.vectors[0]) == dict.fromkeys(["[CLS]", "[SEP]", "red", "passage", ":"], 0.4472)
    assert batch.tokens == 5
    assert fed(embedder.embed_query("red")) == dict.fromkeys(["[CLS]", "[SEP]", "red", "query", ":"], 0.4472)


def test_the_prefix_counts_against_the_ceiling(tmp_path: Path) -> None:
    """Prefix, text and special tokens together may fill the ceiling exactly, and no more."""
    embedder = OnnxEmbedder.from_folder(write_folder(tmp_path, PROFILE | {"document_prefix": "passage: "}))
    assert embedder.embed_documents(["red " * 4]).tokens == 8
    with pytest.raises(QedgeError, match="has 9 tokens"):
        embedder.embed_documents(["red " * 5])


def test_a_cut_query_keeps_its_special_tokens(tmp_path: Path) -> None:
    """A query is cut to six tokens of its own between [CLS] and [SEP]."""
    embedder = OnnxEmbedder.from_folder(write_folder(tmp_path))
    assert fed(embedder.embed_query("red " * 6 + "blue " * 50)) == {"[CLS]": 0.1622, "[SEP]": 0.1622, "red": 0.9733}


@pytest.mark.parametrize(
    "model",
    [
        {"inputs": INPUTS[:1]},
        {"inputs": INPUTS[:2]},
        {"kind": INT32},
        {"output": "token_embeddings"},
        {"declare_width": False},
    ],
)
def test_kinds_of_graph(tmp_path: Path, model: dict[str, object]) -> None:
    """Only the inputs that a graph declares are fed, in its integer type; any 3-D output is pooled."""
    embedder = OnnxEmbedder.from_folder(write_folder(tmp_path, **model))
    assert fed(embedder.embed_query("blue")) == {"[CLS]": 0.5774, "[SEP]": 0.5774, "blue": 0.5774}


def test_sentence_output(tmp_path: Path) -> None:
    """A graph that pools by itself gives the vector as it is, at unit length."""
    embedder = OnnxEmbedder.from_folder(write_folder(tmp_path, sentence=True, output="sentence_embedding"))
    assert fed(embedder.embed_query("blue")) == {"[CLS]": 0.5774, "[SEP]": 0.5774, "blue": 0.5774}


@contextmanager
def recorded_shapes() -> Iterator[list[tuple[int, int]]]:
    """The shapes of the calls that the runtime gets, padding included."""
    shapes: list[tuple[int, int]] = []
    graph_run = _Graph.run

    def run(graph: _Graph, input_ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        shapes.append(input_ids.shape)
        return graph_run(graph, input_ids, mask)

    with mock.patch.object(_Graph, "run", run):
        yield shapes


@given(lengths=st.lists(st.integers(0, 500), max_size=60))
@settings(max_examples=25)
def test_batches(long_model: OnnxEmbedder, lengths: list[int]) -> None:
    """Any mixture of lengths is fed in calls of at most 512 padded tokens and comes back in the order given."""
    with recorded_shapes() as shapes:
        batch = long_model.embed_documents(["red " * length for length in lengths])
    assert all(rows * width <= 512 for rows, width in shapes)
    assert sum(rows for rows, _ in shapes) == len(lengths)
    assert batch.tokens == sum(lengths) + 2 * len(lengths)
    assert [round(vector[RED] / vector[CLS]) for vector in batch.vectors] == lengths


def test_little_padding(long_model: OnnxEmbedder) -> None:
    """Short and long texts in turn are sorted first: padding stays under a tenth."""
    with recorded_shapes() as shapes:
        tokens = long_model.embed_documents(["red " * (5 if n % 2 else 300) for n in range(60)]).tokens
    assert sum(rows * width for rows, width in shapes) < 1.1 * tokens


def test_a_batch_dependent_model_is_noticed(tmp_path: Path) -> None:
    """A graph that averages over padding is not batch-invariant, and `batch_invariance` says by how much."""
    honest = OnnxEmbedder.from_folder(write_folder(tmp_path / "a"))
    careless = OnnxEmbedder.from_folder(write_folder(tmp_path / "b", sentence=True))
    assert honest.batch_invariance == 0.0
    assert careless.batch_invariance > 0.1


def test_tokenizer_json_comes_first(tmp_path: Path) -> None:
    """tokenizer.json is preferred to vocab.txt, and the truncation and padding that its exporter left in it are off."""
    folder = write_folder(tmp_path)
    exported = HuggingFaceTokenizer.from_file(folder / "vocab.txt").raw
    exported.enable_truncation(3)
    exported.enable_padding(length=8)
    exported.save(str(folder / "tokenizer.json"))
    (folder / "vocab.txt").write_text("not a vocabulary", "utf-8")
    assert OnnxEmbedder.from_folder(folder).embed_documents(["red green blue red"]).tokens == 6


def test_the_same_bytes_are_the_same_model(tmp_path: Path) -> None:
    """Another folder and another profile id with the same file have the same identity; other bytes have another."""
    first = OnnxEmbedder.from_folder(write_folder(tmp_path / "a"))
    renamed = OnnxEmbedder.from_folder(write_folder(tmp_path / "b", PROFILE | {"id": "other-name"}))
    cls = OnnxEmbedder.from_folder(write_folder(tmp_path / "c", PROFILE | {"pooling": "cls"}))
    other = OnnxEmbedder.from_folder(write_folder(tmp_path / "d", output="token_embeddings"))
    assert model_identity(first) == model_identity(renamed)
    assert len({model_identity(embedder) for embedder in (first, cls, other)}) == 3


def test_weights_outside_the_graph_belong_to_the_model(tmp_path: Path) -> None:
    """Two models of one architecture differ only in the file of weights beside the graph: it is hashed too."""
    hashes = {OnnxEmbedder.from_folder(write_folder(tmp_path)).model_hash}
    for weights in (b"one", b"two"):
        (tmp_path / "model.onnx_data").write_bytes(weights)
        hashes.add(OnnxEmbedder.from_folder(tmp_path).model_hash)
    assert len(hashes) == 3


@pytest.mark.parametrize("declare_width", [True, False])
def test_wrong_dimensions(tmp_path: Path, declare_width: bool) -> None:
    """A profile of another dimension is refused at construction, also where the graph leaves it open."""
    folder = write_folder(tmp_path, PROFILE | {"dimensions": 384}, declare_width=declare_width)
    with pytest.raises(QedgeError, match="have 11 dimensions, profile 'tiny' says 384") as caught:
        OnnxEmbedder.from_folder(folder)
    assert caught.value.code == 6006


def test_profile_by_id_or_object(tmp_path: Path) -> None:
    """A built-in profile by its id, or one's own, goes before the folder's profile.json."""
    folder = write_folder(tmp_path)
    write_model(folder / "model.onnx", np.ones((len(WORDS), 384)))
    assert OnnxEmbedder.from_folder(folder, "bge-small-en-v1.5").profile.pooling == "cls"
    assert OnnxEmbedder.from_folder(folder, ModelProfile("mine", 384, 16)).profile.id == "mine"


def test_declared_ceiling(tmp_path: Path) -> None:
    """A tokenizer_config.json that declares less than the profile stops the budget with 6153; "no limit" does not."""
    folder = write_folder(tmp_path, PROFILE | {"max_sequence_length": 512})
    for declared, expected in ((128, 128), (512, 512), (int(1e30), None), ("many", None), (True, None)):
        (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": declared}), "utf-8")
        assert OnnxEmbedder.from_folder(folder).tokenizer.max_length == expected
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 128}', "utf-8")
    embedder = OnnxEmbedder.from_folder(folder)
    with pytest.raises(QedgeError) as caught:
        ChunkBudget.resolve(ChunkingOptions(), embedder.profile, embedder.tokenizer)
    assert caught.value.code == 6153


def _truncate_model(folder: Path) -> None:
    model = folder / "model.onnx"
    model.write_bytes(model.read_bytes()[:200])


def _image_model(folder: Path) -> None:
    write_model(folder / "model.onnx", np.eye(len(WORDS)), inputs=["pixel_values"])


def _model_that_lacks_words(folder: Path) -> None:
    write_model(folder / "model.onnx", np.ones((2, len(WORDS))))


@pytest.mark.parametrize(
    ("break_it", "code", "reason"),
    [
        (lambda folder: (folder / "model.onnx").unlink(), 6208, "No such file"),
        (lambda folder: (folder / "model.onnx").write_bytes(b""), 6208, "cannot load"),
        (lambda folder: (folder / "model.onnx").write_bytes(b"GIF89a" * 1000), 6208, "cannot load"),
        (_truncate_model, 6208, "cannot load"),
        (_image_model, 6208, "'pixel_values'"),
        (_model_that_lacks_words, 6206, "the model failed on a batch of shape"),
        (lambda folder: (folder / "vocab.txt").unlink(), 6001, "neither tokenizer.json nor vocab.txt"),
        (lambda folder: (folder / "vocab.txt").write_bytes(b"\xff\xfe\x00"), 6001, "no tokenizer could be read"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), 6001, "no tokenizer could be read"),
        (lambda folder: (folder / "profile.json").unlink(), 6005, "no profile.json"),
        (lambda folder: (folder / "profile.json").write_text("["), 6005, "no profile could be read"),
    ],
)
def test_broken_folders(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], break_it: Callable[[Path], object], code: int, reason: str
) -> None:
    """Each way a folder can be unusable has its code and a reason, at construction; the runtime prints nothing."""
    folder = write_folder(tmp_path)
    break_it(folder)
    with pytest.raises(QedgeError, match=reason) as caught:
        OnnxEmbedder.from_folder(folder)
    assert caught.value.code == code
    assert capfd.readouterr() == ("", "")


def test_no_folder(tmp_path: Path) -> None:
    """A folder that does not exist is named."""
    with pytest.raises(QedgeError, match="no model folder .*nowhere") as caught:
        OnnxEmbedder.from_folder(tmp_path / "nowhere")
    assert caught.value.code == 6208


def test_unknown_profile(tmp_path: Path) -> None:
    """An unknown profile id lists the known ones."""
    with pytest.raises(QedgeError, match="'minilm'; there are all-minilm-l6-v2-int8") as caught:
        OnnxEmbedder.from_folder(write_folder(tmp_path), "minilm")
    assert caught.value.code == 6005


def test_threads_must_be_positive(tmp_path: Path) -> None:
    """Zero threads are refused."""
    with pytest.raises(QedgeError, match="threads must be positive, not 0"):
        OnnxEmbedder.from_folder(write_folder(tmp_path), threads=0)
