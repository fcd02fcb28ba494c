"""The command `qedge`. Each command is a module of its own, imported when it is called, so that start-up stays fast."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from qedge_dagster import __version__
from qedge_dagster.cli.failure import ExitCode, report
from qedge_dagster.cli.output import note

__all__ = ["main"]

#: In the order of `qedge --help`; each is the module of that name.
_COMMANDS = (
    "ingest",
    "search",
    "status",
    "inspect",
    "prune",
    "remove",
    "export",
    "diagnostics",
    "doctor",
    "backup",
    "ui",
)

_EPILOG = """\b
Examples:
  qedge ingest docs --pattern '*.md'
  qedge search "how do I moor the boat?"
  qedge status

Exit codes: 0 completed, 75 suspended (run it again), 130 cancelled, 1 failed, 2 wrong usage."""


class _Qedge(click.Group):
    """Loads commands on demand and turns every exception into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return import_module(f"{__name__}.{cmd_name}").command if cmd_name in _COMMANDS else None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.UsageError, click.exceptions.Exit):
            raise
        except KeyboardInterrupt:  # here, since click would print an empty line of its own first
            ctx.exit(_interrupted())
        except Exception as error:
            if ctx.meta.get("debug"):
                import traceback

                note("".join(traceback.format_exception(error)).rstrip())
            ctx.exit(report(error))

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> NoReturn:
        extra.update(prog_name="qedge", standalone_mode=False)  # the name in messages, however it was started
        try:
            try:
                code = super().main(args, **extra)
            except click.UsageError as error:
                code = report(error)
        except (KeyboardInterrupt, click.Abort):  # outside of `invoke`, or a second one while it dealt with the first
            code = _interrupted()
        sys.exit(code)

    def __call__(self, *args: Any, **extra: Any) -> NoReturn:
        """The program, as it is started from a shell."""
        try:
            self.main(*args, **extra)
        except KeyboardInterrupt:  # between the last two statements of `main`
            sys.exit(ExitCode.CANCELLED)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the interpreter's shutdown would print a traceback


def _interrupted() -> ExitCode:
    note("qedge: interrupted")
    return ExitCode.CANCELLED


@click.command(
    cls=_Qedge,
    epilog=_EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="qedge", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Turn folders of documents into one SQLite file that answers vector, keyword and hybrid queries."""
    if ctx.invoked_subcommand is None:
        note(ctx.get_help())
        ctx.exit(ExitCode.USAGE)
