"""What holds for every chunker, text, tokenizer and budget."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qedge_dagster.documents import DocumentBlock, ExtractedDocument
from tests.chunking.support import CHUNKERS, TOKENIZERS, assert_promises, budget, chunker, document, markdown

_WORDS = st.sampled_from(
    [
        "roof",
        "water",
        "Dr.",
        "etc.",
        "leak?",
        "yes!",
        "\u2026",
        "e.g.",
        "antidisestablishmentarianism",
        "[SEP]",
        "<s>",
        "3.14",
    ]
)
_PIECES = st.one_of(
    _WORDS,
    st.text("abc XYZ.,!?-\n", max_size=30),
    st.text("\u4f60\u597d\u4e16\u754c\u3002\uff01\u5c4b\u6839\u304b\u3089\u6c34", min_size=1, max_size=60),
    st.text("e\u0301\u0323\u0308o\u0300 \u0600a", min_size=1, max_size=30),
    st.sampled_from(
        [
            "\U0001f468\u200d\U0001f469\u200d\U0001f467",
            "\U0001f1e9\U0001f1ea\U0001f1eb",
            "\u2764\ufe0f",
            "\U0001f44d\U0001f3fd",
        ]
    ),
    st.text("\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627\u064b", min_size=1, max_size=30),
    st.text("\u0e19\u0e49\u0e33\u0e23\u0e31\u0e48\u0e27\u0915\u094d\u0937\u093f\u1112\u1161\u11ab\uac01", max_size=30),
    st.integers(1, 120).map(lambda n: "Aa0+/" * n),
    st.integers(1, 60).map(lambda n: "a" + "\u0301" * n),
    st.sampled_from(["\ufdfa", "\u200b", "\u00a0", "\u2028", "\x85", "\x1c", "\ufeff", "\x00", "|"]),
)
_SEPARATORS = st.sampled_from(["", " ", " ", " ", "\n", "\n\n", "\n\n", ". ", "\t", "   \n \n"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.tuples(_PIECES, _SEPARATORS), max_size=25))
    return "".join(part for pair in parts for part in pair) * draw(st.sampled_from([1, 1, 1, 4]))


@st.composite
def documents(draw: st.DrawFn) -> ExtractedDocument:
    """Text alone, or with blocks as no decent extractor would give: overlapping, unordered, outside of the text."""
    text = draw(texts())
    if draw(st.booleans()):
        return document(text)
    edge = st.integers(-3, len(text) + 3)
    kinds = st.sampled_from(["paragraph", "list_item", "code", "quote", "caption", "footer"])
    blocks = st.builds(DocumentBlock, kinds, edge, edge, st.just(0), st.integers(-1, 3))  # type: ignore[arg-type]
    return document(text, draw(st.lists(blocks, max_size=8)))


@st.composite
def markdown_sources(draw: st.DrawFn) -> str:
    line = st.text("abc xyz.\u203a#`\u00e9", max_size=40)
    block = st.one_of(
        st.builds(lambda level, title: f"{'#' * level} {title}", st.integers(1, 5), line),
        st.builds(lambda title: f"a{title}\n===", line),
        texts(),
        st.lists(line, min_size=1, max_size=12).map(lambda lines: "\n".join(f"- {text}" for text in lines)),
        st.lists(line, min_size=1, max_size=12).map(
            lambda lines: "```\n" + "\n".join(lines).replace("`", "") + "\n```"
        ),
        st.integers(1, 40).map(
            lambda n: "| head | tail |\n|---|---|\n" + "\n".join(f"| row {i} | x |" for i in range(n))
        ),
    )
    return "\n\n".join(draw(st.lists(block, max_size=14)))


_GENEROUS = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("tokenizer_name", TOKENIZERS)
@pytest.mark.parametrize("name", CHUNKERS[:3])
@settings(_GENEROUS, max_examples=30)
@given(source=documents(), max_tokens=st.sampled_from([24, 33, 64, 222, 512]))
def test_any_document(name: str, tokenizer_name: str, source: ExtractedDocument, max_tokens: int) -> None:
    """Within budget, verbatim, complete, in order, no cluster cut, and the same again."""
    tokenizer = TOKENIZERS[tokenizer_name]()
    limits = budget(tokenizer, max_tokens)
    subject = chunker(name, limits, tokenizer)
    drafts = subject.chunk(source, pytest.fail)
    assert_promises(source, drafts, limits, tokenizer)
    assert subject.chunk(source, pytest.fail) == drafts
    assert bool(drafts) == bool(source.text.strip())


@pytest.mark.parametrize("tokenizer_name", TOKENIZERS)
@settings(_GENEROUS, max_examples=40)
@given(source=markdown_sources(), max_tokens=st.sampled_from([24, 48, 222]), name=st.sampled_from(CHUNKERS))
def test_any_markdown(tokenizer_name: str, source: str, max_tokens: int, name: str) -> None:
    """The same of documents with headings, lists, code and tables."""
    tokenizer = TOKENIZERS[tokenizer_name]()
    limits = budget(tokenizer, max_tokens)
    extracted = markdown(source)
    assert_promises(extracted, chunker(name, limits, tokenizer).chunk(extracted, pytest.fail), limits, tokenizer)
