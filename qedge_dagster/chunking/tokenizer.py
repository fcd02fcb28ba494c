"""Counting tokens exactly as the encoder will: the encoder's own tokenizer, without truncation or padding."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import xxhash

from qedge_dagster.errors import QedgeError

if TYPE_CHECKING:
    import tokenizers

__all__ = ["HuggingFaceTokenizer", "Tokenizer", "separates_at_white_space"]


class Tokenizer(Protocol):
    """What chunking needs of a tokenizer. All offsets are code-point indexes into the string as passed."""

    @property
    def id(self) -> str:
        """Derived from the content, so that a renamed file is the same tokenizer."""
        ...

    @property
    def special_token_overhead(self) -> int:
        """Special tokens that the encoder adds to a single text."""
        ...

    @property
    def max_length(self) -> int | None:
        """The input ceiling that the tokenizer itself declares, special tokens included; None if it declares none."""
        ...

    def count(self, text: str) -> int:
        """Tokens of `text` without special tokens."""
        ...

    def count_batch(self, texts: Sequence[str]) -> list[int]: ...

    def offsets(self, text: str) -> np.ndarray:
        """int32 of shape (tokens, 2): start and end of each token, without special tokens, in order."""
        ...


class HuggingFaceTokenizer:
    """A `tokenizers.Tokenizer`, with its own truncation and padding switched off."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, *, max_length: int | None = None) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._max_length = max_length

    @classmethod
    def from_file(cls, path: Path | str, *, max_length: int | None = None) -> HuggingFaceTokenizer:
        """A `tokenizer.json`, or a WordPiece `vocab.txt` (uncased BERT).

        A `truncation` entry of tokenizer.json is a default of its exporter, often far below what the model takes
        (MiniLM's says 128), so it is dropped and never taken for the model's ceiling.
        """
        from tokenizers import Tokenizer

        path = Path(path)
        try:
            if path.suffix == ".json":
                return cls(Tokenizer.from_file(str(path)), max_length=max_length)
            return cls(_bert_wordpiece(path), max_length=max_length)
        except Exception as error:  # the library raises bare Exception for a file it cannot read
            raise QedgeError(6001, f"no tokenizer could be read from {path}: {error}") from error

    @property
    def raw(self) -> tokenizers.Tokenizer:
        return self._tokenizer

    @property
    def id(self) -> str:
        return self._content_id

    # Apart from `id`, because type checkers take no cached_property for the protocol's property.
    @cached_property
    def _content_id(self) -> str:
        serialized = self._tokenizer.to_str()
        return f"tokenizers-{xxhash.xxh3_128_hexdigest(serialized.encode())}"

    @property
    def special_token_overhead(self) -> int:
        return self._tokenizer.num_special_tokens_to_add(is_pair=False)

    @property
    def max_length(self) -> int | None:
        return self._max_length

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False))

    def count_batch(self, texts: Sequence[str]) -> list[int]:
        return [len(e) for e in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def offsets(self, text: str) -> np.ndarray:
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        flat = np.fromiter(chain.from_iterable(encoding.offsets), dtype=np.int32, count=2 * len(encoding))
        return flat.reshape(-1, 2)

    @cached_property
    def separates_at_white_space(self) -> bool:
        """Whether tokens never hold or cross a blank, tab or line break, so that counts add up there. Known of BERT's
        WordPiece; false where it is not known."""
        config = json.loads(self._tokenizer.to_str())
        return (
            config["model"]["type"] == "WordPiece"
            and (config["normalizer"] or {}).get("type") == "BertNormalizer"
            and (config["pre_tokenizer"] or {}).get("type") == "BertPreTokenizer"
            and all(
                not (token["lstrip"] or token["rstrip"] or token["content"].split() != [token["content"]])
                for token in config["added_tokens"]
            )
        )


def separates_at_white_space(tokenizer: Tokenizer) -> bool:
    """Whether a text that is parted at a blank, tab or line break has as many tokens as its parts."""
    return isinstance(tokenizer, HuggingFaceTokenizer) and tokenizer.separates_at_white_space


def _bert_wordpiece(vocabulary: Path) -> tokenizers.Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordPiece.from_file(str(vocabulary), unk_token="[UNK]"))  # noqa: S106 - no password
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    separator, classifier = tokenizer.token_to_id("[SEP]"), tokenizer.token_to_id("[CLS]")
    if separator is None or classifier is None:
        raise ValueError("the vocabulary lacks [CLS] or [SEP]")
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", separator), ("[CLS]", classifier))
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return tokenizer
