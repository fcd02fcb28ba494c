"""Counting as the encoder will."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qedge_dagster.chunking.token_index import TokenIndex
from qedge_dagster.chunking.tokenizer import separates_at_white_space
from tests.chunking.support import TOKENIZERS, wordpiece

_TEXTS = st.text("ab .,\n\t\u00e9e\u0301\u0130\u4f60\u597d\U0001f468\u200d\U0001f469#", max_size=60)


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=_TEXTS)
def test_offsets_point_into_the_text_as_passed(name: str, text: str) -> None:
    """One row for each token, in order, within the text: never into a normalised copy."""
    tokenizer = TOKENIZERS[name]()
    offsets = tokenizer.offsets(text)
    assert offsets.shape == (tokenizer.count(text), 2)
    assert (np.diff(offsets[:, 0]) >= 0).all()
    assert not len(offsets) or (offsets.min() >= 0 and offsets.max() <= len(text))


def test_tokens_of_a_long_text_are_those_of_one_encode() -> None:
    """It is encoded in slices, cut where no token is."""
    text = "The roof leaks; na\u00efve repairs of the slates won't do.\n" * 3000
    whole = wordpiece().raw.encode(text, add_special_tokens=False).offsets
    assert TokenIndex(text, wordpiece()).starts.tolist() == [start for start, _ in whole]


def test_only_wordpiece_is_known_to_separate_at_white_space() -> None:
    """Of other tokenizers every piece is counted."""
    assert {name: separates_at_white_space(make()) for name, make in TOKENIZERS.items()} == {
        "wordpiece": True,
        "byte-level": False,
        "unigram": False,
    }


@given(parts=st.lists(_TEXTS, max_size=4), separator=st.sampled_from([" ", "\t", "\n", "\n\n"]))
def test_counts_of_wordpiece_add_up_at_white_space(parts: list[str], separator: str) -> None:
    """What spares the second count of most chunks."""
    tokenizer = wordpiece()
    assert tokenizer.count(separator.join(parts)) == sum(map(tokenizer.count, parts))
