"""Where the samples are, and the programs that they call."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import click
from dagster._cli import create_dagster_cli
from dagster._daemon.cli import create_dagster_daemon_cli

import qedge_dagster
from qedge_dagster.cli import main

ROOT = Path(qedge_dagster.__file__).parents[1]
SAMPLES = ROOT / "samples"


def programs() -> dict[str, click.Command]:
    """The programs of samples, by the name of their file. The web interface's is of another package, which the
    extra brings."""
    from dagster_webserver.cli import dagster_webserver

    return {
        "qedge": main,
        "dagster": create_dagster_cli(),
        "dagster-daemon": create_dagster_daemon_cli(),
        "dagster-webserver": dagster_webserver,
    }


def parse(words: list[str]) -> tuple[str, dict[str, object]]:
    """The name and the values of the last command of a command line, as the program itself reads it.

    Raises `click.UsageError` for what the program would refuse, and `KeyError` for a program that is none of ours.
    """
    command = programs()[PurePosixPath(words[0]).name]
    rest = words[1:]
    context: click.Context | None = None
    name = PurePosixPath(words[0]).name
    while isinstance(command, click.Group):
        context = command.make_context(name, list(rest), parent=context)
        word, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert word is not None
        assert found is not None
        name, command = word, found
    return name, command.make_context(name, list(rest), parent=context).params
