"""Where sentences start."""

from __future__ import annotations

import re

import numpy as np

from qedge_dagster.chunking.candidates import Codes, Positions, one_of

__all__ = ["sentence_starts"]

#: Full stop, exclamation and question mark, as Chinese and Japanese write them: no white space follows.
_WIDE_TERMINATORS = frozenset({0x3002, 0xFF01, 0xFF1F})
_TERMINATORS = frozenset(ord(c) for c in ".!?\u2026") | _WIDE_TERMINATORS
#: Quotes, brackets and marks of emphasis that may stand between the end of a sentence and the white space.
_CLOSERS = frozenset(ord(c) for c in "\"')]}*_`\xbb\u201d\u2019\u203a\u300d\u300f\uff09\u3011\u300b\u3009")

_ABBREVIATIONS = frozenset(
    """
    abb abs al approx apr art aug bd bzw ca cap capt cf chap co col corp dec dept dipl dr ed eds eg ehem engl esp est
    etc etw ev evtl fa feb ff fig figs gen ges ggf gov hr hrsg ie inc incl inkl insb jan jr jul jun kap lt ltd mar max
    mfr min mio mlle mme mr mrs ms mt nos nov nr oct op para pp prof ref refs rep rev sec sen sept sgt sog sr st str
    tab tel usw vgl viz vol vols vs wg zb zzgl
    """.split()  # noqa: SIM905 - a list would take a page
)
_LAST_WORD = re.compile(r"(?:^|[\s(\[\"'\u201c\u2018\xab])([^\W\d_]+(?:\.[^\W\d_]+)*)\.$")
_LIST_NUMBER = re.compile(r"(?:^|\n)[ \t]*\w{1,3}\.$")
_LOOK_BACK = 24


def sentence_starts(text: str, codes: Codes, word_starts: Positions, word_ends: Positions) -> Positions:
    """Positions of the first character of each sentence but the first.

    `word_starts` and `word_ends` delimit the runs of characters that are not white space.
    """
    ends, starts = word_ends[:-1], word_starts[1:]
    last = ends - 1
    for _ in range(3):  # a few closing quotes or brackets may stand between the mark and the white space
        last = np.where(one_of(codes[last], _CLOSERS), np.maximum(last - 1, 0), last)
    ended = one_of(codes[last], _TERMINATORS)
    dots = np.flatnonzero(ended & (codes[last] == ord(".")))
    pairs = zip(dots.tolist(), last[dots].tolist(), starts[dots].tolist(), strict=True)
    ended[[index for index, dot, start in pairs if not _ends_sentence(text, dot, start)]] = False
    found = starts[ended]
    if text.isascii():
        return found
    wide = _after_wide_terminators(codes)
    return np.union1d(found, wide[[not text[position].isspace() for position in wide.tolist()]])


def _ends_sentence(text: str, dot: int, start: int) -> bool:
    if text[start].islower():
        return False
    before = text[max(0, dot - _LOOK_BACK) : dot + 1]
    if _LIST_NUMBER.search(before):
        return False
    match = _LAST_WORD.search(before)
    if match is None:
        return True
    word = match[1]
    if len(word) == 1:
        return word in "Ia"
    if word.lower() == "no":
        return not text[start].isdigit()
    return "." not in word and word.lower() not in _ABBREVIATIONS


def _after_wide_terminators(codes: Codes) -> Positions:
    after = np.flatnonzero(one_of(codes, _WIDE_TERMINATORS)) + 1
    for _ in range(3):
        after = after[after < len(codes)]
        after = np.where(one_of(codes[after], _CLOSERS), after + 1, after)
    return after[after < len(codes)]
