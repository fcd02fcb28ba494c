"""Stores by their URL: what is shown and kept of it, on the command line and in a component."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
import pytest
from click.testing import CliRunner

from qedge_dagster import FsspecSource
from qedge_dagster.cli import main
from qedge_dagster.errors import QedgeError
from qedge_dagster.orchestration.settings import SourceSettings
from qedge_dagster.sources.fsspec import public_url
from tests.sources.stores import TREE, Store, run


@pytest.mark.parametrize(
    ("url", "public", "is_whole"),
    [
        ("s3://bucket/a/prefix/", "s3://bucket/a/prefix", True),
        ("memory://", "memory://", True),
        ("sftp://alice:secret@host:2022/docs", "sftp://host:2022/docs", True),
        ("abfs://container@account.net/docs", "abfs://container@account.net/docs", True),
        ("abfs://name:secret@account.net/docs", "abfs://account.net/docs", False),
        ("s3://key:sec/ret@bucket/docs", "s3://", False),
        ("https://host/docs?sig=secret", "https://host/docs", False),
        ("github://owner:repository@main/docs", "github://main/docs", False),
        ("zip://docs::s3://key:secret@bucket/a.zip", "zip://docs::s3://bucket/a.zip", False),
        ("zip://::/data/a.zip", "zip://::/data/a.zip", True),
    ],
)
def test_what_is_shown_of_a_url(url: str, public: str, is_whole: bool) -> None:
    """Logins and queries are left out, and it is known whether the rest names one place."""
    assert public_url(url) == (public, is_whole)


def test_no_secret_is_stored(tmp_path: Path, s3: dict[str, Any]) -> None:
    """Keys in the options and in the URL are in no file that a run leaves."""
    store = Store(f"s3://{uuid4().hex}/docs", s3)
    store.filesystem.mkdir(store.root.partition("/")[0])
    store.put(TREE)
    source = FsspecSource(store.url, storage_options=s3)
    assert source.source_id == store.url
    assert run(tmp_path / "notes.db", source).documents_indexed == 7
    for path in tmp_path.iterdir():
        assert s3["secret"].encode() not in path.read_bytes()
        assert s3["key"].encode() not in path.read_bytes()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("docs", "is no URL"),
        ("nosuch://docs", "knows no such protocol"),
        ("oss://bucket/docs", "library of this protocol is missing"),
        ("https://host/docs?sig=secret", "give a source_id"),
    ],
)
def test_refused_when_made(url: str, words: str) -> None:
    """What is wrong with the URL is said at once, without what may be secret in it."""
    with pytest.raises(QedgeError, match=words) as caught:
        FsspecSource(url)
    assert caught.value.code == 6005
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("engine", [["--no-dagster"], []], ids=["engine", "dagster"])
def test_from_the_command_line(
    engine: list[str], tmp_path: Path, s3: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`qedge ingest s3://…` and `qedge prune` take a store as they take a folder, with credentials from fsspec's own
    configuration; a URL that holds any is refused, and none is kept."""
    monkeypatch.setitem(fsspec.config.conf, "s3", s3)
    monkeypatch.chdir(tmp_path)
    store = Store(f"s3://{uuid4().hex}/docs", s3)
    store.filesystem.mkdir(store.root.partition("/")[0])
    store.put(TREE)

    def qedge(*arguments: str) -> Any:
        done = CliRunner().invoke(main, [*arguments, "--db", "notes.db", "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    ingest = ("ingest", store.url, "--pattern", "*.md", "--exclude", "drafts", *engine)
    assert qedge(*ingest)["documents_indexed"] == 2
    store.remove("a/one.md")
    assert qedge("prune", store.url, "--pattern", "*.md")["documents_removed"] == 1
    again = qedge(*ingest)
    assert (again["source_id"], again["documents_skipped"], again["embed_calls"]) == (store.url, 1, 0)
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or s3["secret"].encode() not in path.read_bytes()
    for url in ("s3://key:word@bucket/docs", "https://host/docs?sig=word"):
        refused = CliRunner().invoke(main, ["ingest", url, "--db", "other.db"])
        assert refused.exit_code == 2
        assert "6005" in refused.stderr
        assert "word@" not in refused.output
    assert CliRunner().invoke(main, ["ingest", store.url, "docs"]).exit_code == 2


def test_in_a_component(s3: dict[str, Any]) -> None:
    """The settings of a Dagster component take a URL with its options, and no folder beside it."""
    settings = SourceSettings(url="s3://bucket/docs", storage_options=s3, pattern="*.md", id="docs")
    source = settings.source(Path("/"))
    assert isinstance(source, FsspecSource)
    assert (source.source_id, source.location) == ("docs", "s3://bucket/docs")
    with pytest.raises(ValueError, match="either"):
        SourceSettings(url="s3://bucket/docs", folder="docs")
