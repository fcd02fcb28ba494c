"""Document ids of file names."""

from __future__ import annotations

import re
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qedge_dagster.sources.names import document_names, printable

_NFC, _NFD = "r\u00e9sum\u00e9.md", "re\u0301sume\u0301.md"
_names = st.lists(
    st.one_of(
        st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=6),
        st.binary(min_size=1, max_size=6)
        .filter(lambda name: not {0, 47} & set(name))
        .map(lambda name: name.decode("utf-8", "surrogateescape")),
        st.text(st.sampled_from("%{}0AFaé\u0301e\udce9\n"), min_size=1, max_size=8),
    ),
    unique=True,
    max_size=8,
)


def _original(document_id: str) -> bytes:
    parts = re.split(r"%\{([0-9A-F]+)\}", document_id)
    return b"".join(bytes.fromhex(part) if i % 2 else part.encode() for i, part in enumerate(parts))


@pytest.mark.parametrize(
    ("name", "document_id"),
    [
        ("plain name (1).md", "plain name (1).md"),
        ("spaces & ünï#code%20.md", "spaces & ünï#code%20.md"),
        ("%E4%BD%A0.txt", "%E4%BD%A0.txt"),
        ("日本語.md", "日本語.md"),
        ("👩\u200d👧.md", "👩\u200d👧.md"),
        (_NFD, _NFC),
        ("caf\udce9.txt", "caf%{E9}.txt"),
        ("two\nlines.txt", "two%{0A}lines.txt"),
        ("a\u2028b", "a%{E280A8}b"),
        ("%{E9}.txt", "%{25}{E9}.txt"),
        ("%{x}.txt", "%{x}.txt"),
    ],
)
def test_id_of_one_name(name: str, document_id: str) -> None:
    """A name that can be printed is its own id in NFC; what cannot be printed is escaped."""
    assert document_names([name]) == [document_id]


def test_normalisation_collision() -> None:
    """Where both spellings exist, the composed one keeps the id that it has everywhere."""
    assert document_names([_NFD, _NFC]) == ["re%{CC81}sume%{CC81}.md", _NFC]


def test_collision_without_a_composed_name() -> None:
    """Two decomposed spellings of one name are two ids."""
    first, second = "a\u0323\u0307", "a\u0307\u0323"
    assert normalize("NFC", first) == normalize("NFC", second)
    ids = document_names([first, second])
    assert len(set(ids)) == 2


def test_same_name_twice_is_not_a_collision() -> None:
    """A duplicate stays one, for the run to report."""
    assert document_names([_NFD, _NFD]) == [_NFC, _NFC]


@given(_names)
def test_ids_are_unique_printable_and_reversible(names: list[str]) -> None:
    """No two names of a folder share an id; an id can be encoded, holds no control character, and tells the name."""
    ids = document_names(names)
    assert len(set(ids)) == len(names)
    for name, document_id in zip(names, ids, strict=True):
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", document_id)
        original = _original(document_id).decode("utf-8", "surrogateescape")
        assert normalize("NFC", original) == normalize("NFC", name)


@given(_names)
def test_ids_do_not_depend_on_the_order(names: list[str]) -> None:
    """The id of a name is the same whatever order the folder is listed in."""
    assert document_names(names[::-1]) == document_names(names)[::-1]


def test_printable_keeps_paths() -> None:
    """Slashes stay."""
    assert printable("/srv/docs/caf\udce9") == "/srv/docs/caf%{E9}"
