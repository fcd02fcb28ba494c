"""Every command and option explains itself, and the written reference says the same."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from typing import Any, get_args

import click
import pytest

from qedge_dagster.chunking.base import ChunkerName, ChunkingOptions, Overflow
from qedge_dagster.cli import main
from qedge_dagster.collection.connection import Synchronous
from qedge_dagster.collection.schema import CollectionSpec, Distance, FtsTokenizer
from qedge_dagster.embedding.profiles import PROFILES
from qedge_dagster.pipeline.options import IngestionOptions
from scripts.cli_reference import TARGET, reference
from tests.cli.conftest import Invoke

CONTEXT = click.Context(main, info_name="qedge")
NAMES = main.list_commands(CONTEXT)


def _command(name: str) -> click.Command:
    command = main.get_command(CONTEXT, name)
    assert command is not None
    return command


def _options(name: str) -> dict[str, click.Option]:
    return {o.opts[0]: o for o in _command(name).params if isinstance(o, click.Option)}


@pytest.mark.parametrize("name", NAMES)
def test_every_command_and_option_has_help(name: str) -> None:
    """A command has a summary, a description and examples; an option has help, and says its default."""
    command = _command(name)
    assert command.help
    assert command.short_help
    assert command.epilog
    assert f"\n  qedge {name} " in command.epilog
    for option in _options(name).values():
        assert option.help, option.opts
        says_default = "[default: " in option.help or option.show_default
        assert says_default or option.is_flag, option.opts


@pytest.mark.parametrize("name", NAMES)
def test_common_options(name: str) -> None:
    """Every command takes --db, --json and --debug, and --collection unless it is about all of them."""
    collection = set() if name in ("ui", "backup") else {"--collection"}
    assert {"--db", "--json", "--debug", *collection} <= _options(name).keys()


def test_reference_is_up_to_date() -> None:
    """docs/cli.md is what scripts/cli_reference.py writes."""
    assert TARGET.read_text("utf-8") == reference()


@pytest.mark.parametrize("name", NAMES)
def test_reference_is_complete(name: str) -> None:
    """The reference has a section for every command, and a row for every option."""
    text = TARGET.read_text("utf-8")
    section = re.search(rf"\n## qedge {name}\n(.*?)(?=\n## |\Z)", text, re.DOTALL)
    common = re.search(r"\n## Every command\n(.*?)(?=\n## )", text, re.DOTALL)
    assert section
    assert common
    for option in _options(name):
        assert re.search(rf"^\| `{option}[ `]", common[1] + section[1], re.MULTILINE), option


@pytest.mark.parametrize("name", ["", *NAMES])
def test_examples_are_valid(name: str) -> None:
    """Every example in the help is a command line that the program takes."""
    epilog = main.epilog if not name else _command(name).epilog
    examples = re.findall(r"^  qedge (.+)$", epilog or "", re.MULTILINE)
    assert examples
    for example in examples:
        command, *args = shlex.split(example, comments=True)
        _command(command).make_context(command, args, parent=CONTEXT)


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_is_shown(name: str, qedge: Invoke) -> None:
    """--help prints to stdout and succeeds, within a hundred columns."""
    result = qedge(*([name] if name else []), "--help", terminal_width=100)
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: qedge")
    assert result.stderr == ""


def test_no_command_shows_help(qedge: Invoke) -> None:
    """`qedge` alone is wrong usage: the help goes to stderr."""
    result = qedge()
    assert (result.exit_code, result.stdout) == (2, "")
    assert "ingest" in result.stderr


def test_version(qedge: Invoke) -> None:
    """--version names program and version."""
    assert re.fullmatch(r"qedge \d+\.\d+\.\d+\n", qedge("--version").stdout)


CHOICES: dict[str, Any] = {
    "--chunker": get_args(ChunkerName),
    "--overflow": get_args(Overflow),
    "--distance": get_args(Distance),
    "--fts-tokenizer": get_args(FtsTokenizer),
    "--synchronous": get_args(Synchronous),
    "--profile": tuple(PROFILES),
}


@pytest.mark.parametrize("option", CHOICES)
def test_choices_are_those_of_the_library(option: str) -> None:
    """The command line spells its choices out, to start fast; they are the library's."""
    choice = _options("ingest")[option].type
    assert isinstance(choice, click.Choice)
    assert tuple(choice.choices) == CHOICES[option]


def test_defaults_are_those_of_the_library() -> None:
    """An option left out means the same on the command line as in Python."""
    context = _command("ingest").make_context("ingest", ["docs"], parent=CONTEXT)
    for field in fields(ChunkingOptions):
        assert context.params[field.name] == field.default, field.name
    assert context.params["max_document_mib"] * 1024 * 1024 == IngestionOptions().max_document_bytes
    assert context.params["synchronous"] == IngestionOptions().synchronous
    assert context.params["first_migration"] == IngestionOptions().first_migration
    assert context.params["collection"] == CollectionSpec().name
    for option in ("distance", "fts_tokenizer"):
        assert context.params[option] is None
        help_text = _options("ingest")["--" + option.replace("_", "-")].help
        assert help_text is not None
        assert help_text.endswith(f"[default: {getattr(IngestionOptions(), option)}]")
