"""Tokenizers of three kinds, documents without an extractor, and the promises that every chunker makes."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import regex
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

import qedge_dagster.embedding
from qedge_dagster.chunking import (
    ChunkBudget,
    ChunkDraft,
    Chunker,
    ChunkingOptions,
    HuggingFaceTokenizer,
    Tokenizer,
    make_chunker,
)
from qedge_dagster.chunking.breadcrumbs import sanitize_heading
from qedge_dagster.documents import DocumentBlock, ExtractedDocument
from qedge_dagster.embedding.profiles import ModelProfile
from qedge_dagster.extractors import ExtractionContext, MarkdownExtractor
from qedge_dagster.sources import SourceItem

__all__ = [
    "CHUNKERS",
    "MINILM",
    "TOKENIZERS",
    "assert_promises",
    "budget",
    "chunk",
    "chunker",
    "document",
    "markdown",
    "paragraph",
    "uncovered",
    "wordpiece",
]

CHUNKERS = ("token-window", "plain", "markdown-heading", "auto")
MINILM = ModelProfile("minilm", 384, 256)

_VOCABULARY = Path(qedge_dagster.embedding.__file__).parent / "data" / "vocab.txt"
_TRAINING = (
    "The roof leaks where the old lead meets the new slate, and water runs along the beam.",
    "Der Dachdecker kommt am Montag; bis dahin steht ein Eimer auf dem Dachboden.",
    "水は梁を伝って流れる。屋根を直すまで、桶を置いておく。",
    "Вода течёт по балке, пока крышу не починят. مياه السقف",
)


@cache
def wordpiece() -> HuggingFaceTokenizer:
    """The default model's own."""
    return HuggingFaceTokenizer.from_file(_VOCABULARY)


@cache
def byte_level_bpe() -> HuggingFaceTokenizer:
    """Blanks are part of tokens, and one character may be four of them."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_TRAINING, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    return HuggingFaceTokenizer(tokenizer)


@cache
def unigram() -> HuggingFaceTokenizer:
    """Normalises compatibility forms, so that one character may become many; pieces span blanks."""
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=200,
        special_tokens=["<unk>"],
        unk_token="<unk>",  # noqa: S106 - no password
        show_progress=False,
    )
    tokenizer.train_from_iterator(_TRAINING, trainer)
    return HuggingFaceTokenizer(tokenizer)


TOKENIZERS: dict[str, Callable[[], HuggingFaceTokenizer]] = {
    "wordpiece": wordpiece,
    "byte-level": byte_level_bpe,
    "unigram": unigram,
}


def budget(tokenizer: Tokenizer, max_tokens: int | None = None, **options: int) -> ChunkBudget:
    profile = (
        MINILM if max_tokens is None else ModelProfile("any", 8, max_tokens + 32 + tokenizer.special_token_overhead)
    )
    return ChunkBudget.resolve(ChunkingOptions(**options), profile, tokenizer)  # type: ignore[arg-type]


def chunker(
    name: str, limits: ChunkBudget | None = None, tokenizer: Tokenizer | None = None, **options: object
) -> Chunker:
    tokenizer = tokenizer or wordpiece()
    chosen = ChunkingOptions(chunker=name, **options)  # type: ignore[arg-type]
    return make_chunker(chosen, limits or ChunkBudget.resolve(chosen, MINILM, tokenizer), tokenizer)


def chunk(name: str, source: ExtractedDocument, **options: object) -> list[ChunkDraft]:
    return chunker(name, **options).chunk(source, _no_warning)


def _no_warning(message: str) -> None:
    raise AssertionError(f"unexpected warning: {message}")


def document(text: str, blocks: Sequence[DocumentBlock] = ()) -> ExtractedDocument:
    return ExtractedDocument("d", "test", 1, "text/plain", text, tuple(blocks))


def markdown(text: str) -> ExtractedDocument:
    item = SourceItem("d.md", "text/markdown", lambda: io.BytesIO(text.encode()))
    return MarkdownExtractor().extract(item, ExtractionContext())


def paragraph(chance: random.Random, words: int) -> str:
    """Sentences of 5 to 20 words, each of which is one token to WordPiece."""
    chosen = [chance.choice(_WORDS) for _ in range(words)]
    end = chance.randint(5, 20)
    while end < words:
        chosen[end - 1] += "."
        end += chance.randint(5, 20)
    return " ".join(chosen)


_WORDS = """
roof water beam slate lead house winter summer garden river stone wall window door light north south market bread
table chair paper letter street town field horse cloud rain snow wind fire smoke night morning evening song story
child mother father friend doctor teacher king queen soldier sailor ship boat harbor island mountain forest tree
leaf flower apple orange silver gold iron copper coal wood glass cloth silk wool cotton leather rope wheel engine
""".split()  # noqa: SIM905 - a list would take a page


def uncovered(source: ExtractedDocument, drafts: Sequence[ChunkDraft]) -> list[int]:
    """Positions of characters, not white space, that are in no chunk and no heading that became a path."""
    seen = bytearray(len(source.text))
    for draft in drafts:
        seen[draft.char_start : draft.char_end] = b"\1" * (draft.char_end - draft.char_start)
    titles = {title for draft in drafts for title in draft.heading_path}
    for block in source.blocks:
        if block.kind == "heading" and sanitize_heading(source.text[block.start : block.end]) in titles:
            start = source.text.rfind("\n", 0, block.start) + 1
            end = source.text.find("\n", block.end)
            end = len(source.text) if end < 0 else end
            if underline := regex.match(r"\n {0,3}(=+|-+)[ \t]*(?=\n|\Z)", source.text, pos=end):
                end = underline.end()
            seen[start:end] = b"\1" * (end - start)
    return [i for i, c in enumerate(source.text) if not seen[i] and not c.isspace()]


def assert_promises(
    source: ExtractedDocument, drafts: Sequence[ChunkDraft], limits: ChunkBudget, tokenizer: Tokenizer
) -> None:
    """All that SPEC promises of any list of chunks under the policy `split`."""
    boundaries = {0, *(match.end() for match in regex.finditer(r"\X", source.text))}
    assert [draft.ordinal for draft in drafts] == list(range(len(drafts)))
    for before, draft in pairwise(drafts):
        assert before.char_start <= draft.char_start
        assert before.char_end < draft.char_end
    for draft in drafts:
        own = source.text[draft.char_start : draft.char_end]
        assert draft.text == own or (draft.text.endswith("\n" + own) and draft.text.count("|") > own.count("|"))
        assert own.strip()
        assert draft.token_count == tokenizer.count(draft.text) <= limits.max_tokens
        assert tokenizer.count(draft.embed_text) + limits.reserved <= limits.max_sequence_length
        assert len(draft.text) <= limits.max_characters
        assert draft.embed_text == (f"{draft.breadcrumb}\n\n{draft.text}" if draft.breadcrumb else draft.text)
        assert tuple(" \u203a ".join(draft.heading_path).split(" \u203a ")) == (draft.heading_path or ("",))
        assert " \u203a ".join(draft.heading_path).endswith(draft.breadcrumb)
        for position in (draft.char_start, draft.char_end):
            assert position in boundaries or _lies_in_a_giant(position, source.text, limits, tokenizer)
    assert uncovered(source, drafts) == []


def _lies_in_a_giant(position: int, text: str, limits: ChunkBudget, tokenizer: Tokenizer) -> bool:
    """Whether the cluster around the position is over the budget all by itself."""
    for match in regex.finditer(r"\X", text):
        if match.start() < position < match.end():
            room = limits.max_characters - limits.max_characters * limits.overlap // limits.max_tokens
            return len(match[0]) > room or tokenizer.count(match[0]) > limits.max_tokens - limits.overlap
    return False
