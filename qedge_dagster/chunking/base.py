"""The contract of a chunker, and the token budget it keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal, Protocol

from qedge_dagster.chunking.tokenizer import Tokenizer
from qedge_dagster.documents import UNKNOWN_PAGE, BlockKind, ExtractedDocument
from qedge_dagster.embedding.profiles import ModelProfile
from qedge_dagster.errors import QedgeError
from qedge_dagster.hashing import content_hash

__all__ = ["ChunkBudget", "ChunkDraft", "Chunker", "ChunkerName", "ChunkingOptions", "Overflow", "embed_text"]

ChunkerName = Literal["auto", "markdown-heading", "plain", "token-window"]
Overflow = Literal["split", "truncate", "throw"]


@dataclass(frozen=True, slots=True)
class ChunkingOptions:
    """What a user may choose; None means derived from the model (`ChunkBudget.resolve`)."""

    chunker: ChunkerName = "auto"
    max_tokens: int | None = None
    overlap: int | None = None
    min_tokens: int | None = None
    max_characters: int | None = None
    heading_path_token_budget: int = 32
    split_levels: tuple[int, ...] = (1, 2, 3)
    overflow: Overflow = "split"

    def __post_init__(self) -> None:
        for name in ("max_tokens", "min_tokens", "max_characters"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise QedgeError(6005, f"{name} must be positive, not {value}")
        if self.overlap is not None and self.overlap < 0:
            raise QedgeError(6005, f"overlap must not be negative, not {self.overlap}")
        if self.heading_path_token_budget < 0:
            raise QedgeError(
                6005, f"heading_path_token_budget must not be negative, not {self.heading_path_token_budget}"
            )
        if self.max_tokens is not None:
            _check_proportions(6005, self.max_tokens, self.overlap, self.min_tokens)
        if not self.split_levels or not set(self.split_levels) <= set(range(1, 7)):
            raise QedgeError(6005, f"split_levels must be some of 1 to 6, not {self.split_levels}")
        if self.chunker not in ("auto", "markdown-heading", "plain", "token-window"):
            raise QedgeError(6005, f"no chunker is called {self.chunker!r}")
        if self.overflow not in ("split", "truncate", "throw"):
            raise QedgeError(6005, f"overflow must be split, truncate or throw, not {self.overflow!r}")


@dataclass(frozen=True, slots=True)
class ChunkBudget:
    """Every number a chunker keeps to, resolved once before the first document.

    `max_tokens` is for the chunk's own text; `heading_path_token_budget` for the breadcrumb and the blank line after
    it; `reserved` is what the encoder adds to every text (special tokens and document prefix). Together they never
    exceed `max_sequence_length`.
    """

    max_tokens: int
    overlap: int
    min_tokens: int
    max_characters: int
    heading_path_token_budget: int
    reserved: int
    max_sequence_length: int

    @classmethod
    def resolve(cls, options: ChunkingOptions, profile: ModelProfile, tokenizer: Tokenizer | None) -> ChunkBudget:
        """Raises `QedgeError` 6001 without a tokenizer, 6153 where tokenizer and profile disagree on the ceiling, 6003
        where the numbers do not fit."""
        if tokenizer is None:
            raise QedgeError(6001, f"the embedder of profile {profile.id!r} has no tokenizer")
        ceiling = tokenizer.max_length
        if ceiling is not None and ceiling < profile.max_sequence_length:
            raise QedgeError(
                6153, f"profile {profile.id!r} takes {profile.max_sequence_length} tokens, its tokenizer {ceiling}"
            )
        overhead = tokenizer.special_token_overhead
        prefix = tokenizer.count(profile.document_prefix) if profile.document_prefix else 0
        room = profile.max_sequence_length - overhead - options.heading_path_token_budget - prefix
        sum_ = (
            f"{profile.max_sequence_length} - {overhead} special - {options.heading_path_token_budget} heading path"
            f" - {prefix} prefix = {room}"
        )
        max_tokens = room if options.max_tokens is None else options.max_tokens
        if not 0 < max_tokens <= room:
            raise QedgeError(6003, f"max_tokens {max_tokens} does not fit: {sum_}")
        overlap = max(8, (max_tokens * 15 // 100) // 8 * 8) if options.overlap is None else options.overlap
        min_tokens = max(16, max_tokens // 8) if options.min_tokens is None else options.min_tokens
        _check_proportions(6003, max_tokens, overlap, min_tokens, sum_)
        max_characters = 10 * max_tokens if options.max_characters is None else options.max_characters
        return cls(
            max_tokens,
            overlap,
            min_tokens,
            max_characters,
            options.heading_path_token_budget,
            overhead + prefix,
            profile.max_sequence_length,
        )

    def recipe_fields(self) -> tuple[object, ...]:
        return tuple(asdict(self).values())


def _check_proportions(code: int, max_tokens: int, overlap: int | None, min_tokens: int | None, sum_: str = "") -> None:
    suffix = f" ({sum_})" if sum_ else ""
    if overlap is not None and 2 * overlap >= max_tokens:
        raise QedgeError(code, f"overlap {overlap} must be under half of max_tokens {max_tokens}{suffix}")
    if min_tokens is not None and min_tokens >= max_tokens:
        raise QedgeError(code, f"min_tokens {min_tokens} must be under max_tokens {max_tokens}{suffix}")


def embed_text(breadcrumb: str, text: str) -> str:
    """What is embedded and hashed: the breadcrumb, a blank line and the text; or the text alone."""
    return f"{breadcrumb}\n\n{text}" if breadcrumb else text


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """A chunk before it has a vector. `text == document.text[char_start:char_end]`, except where a table's header rows
    are repeated. `token_count` counts `text` alone."""

    ordinal: int
    text: str
    embed_text: str
    heading_path: tuple[str, ...]
    breadcrumb: str
    char_start: int
    char_end: int
    token_count: int
    kind: BlockKind = "paragraph"
    page: int = UNKNOWN_PAGE

    @property
    def content_hash(self) -> bytes:
        return content_hash(self.embed_text)


class Chunker(Protocol):
    """`ExtractedDocument` → chunks. Synchronous, pure, deterministic."""

    @property
    def id(self) -> str: ...

    @property
    def version(self) -> int:
        """Bump whenever the output for an identical input changes: it is part of the recipe."""
        ...

    def recipe_fields(self) -> tuple[object, ...]:
        """Every resolved option that the output depends on."""
        ...

    def chunk(self, document: ExtractedDocument, warn: Callable[[str], None]) -> list[ChunkDraft]:
        """Raises `QedgeError` 6152 for an over-budget unit under overflow `throw`, 6151 when a chunk breaks the budget
        (a fault of the chunker). `warn` gets one line per truncated unit."""
        ...
