"""Write docs/cli.md from the program's own help: `python scripts/cli_reference.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from qedge_dagster.cli import main

TARGET = Path(__file__).parent.parent / "docs" / "cli.md"

_INTRODUCTION = """\
# Command line

Written by `scripts/cli_reference.py` from the program's own help; do not edit it by hand.

* **Results** go to stdout, everything else (progress, how to go on, errors) to stderr. With `--json`, stdout holds one
  JSON value and nothing else; if there is no result, it is empty.
* **Errors** are one line: `qedge: 6008 RunAlreadyActive: what happened. What to do.` Every code is in
  [errors.md](errors.md). `--debug` adds the traceback.
* **Exit codes**: 0 completed, 75 suspended (run the same command again), 130 cancelled, 1 failed, 2 wrong usage. A
  completed run may still have documents that failed: they are in its result.
* **Ctrl-C or SIGTERM** ends a run at its next committed boundary; nothing that was done is lost. A second Ctrl-C leaves
  at once, and costs at most one window of embedding.
* **File types**: `.md` and `.markdown` as Markdown; `.txt`, `.text`, `.log` and `.csv` as plain text. Any other file is
  recorded as unsupported, which is no failure.
* **Sources**: every folder is a source of its own, named by its path unless `--source-id` says otherwise, so a folder
  that was moved or renamed is another source. Give it the same `--source-id` from the start, or ingest it from its new
  place and drop the old one with `qedge remove --all --source-id ID`; `qedge status` lists the ids.
* **Scores** of a hybrid search are made of ranks, not of relevance: some chunk is always first. What the collection
  does not hold has a best hit too.
"""


def reference() -> str:
    context = click.Context(main, info_name="qedge")
    names = main.list_commands(context)
    commands = {name: command for name in names if (command := main.get_command(context, name)) is not None}
    names_of = [{str(option.name) for option in _options(command)} for command in commands.values()]
    shared = {name for name in set.union(*names_of) if sum(name in some for some in names_of) >= len(names_of) - 2}
    parts = [
        _INTRODUCTION,
        "\n## Every command\n\n`ui` and `backup` are about all collections and take no `--collection`;"
        " `doctor` looks at all without it.\n\n",
        *_table(next(iter(commands.values())), only=shared),
    ]
    for name, command in commands.items():
        command_context = click.Context(command, info_name=name, parent=context)
        usage = " ".join(command.collect_usage_pieces(command_context))
        parts.append(f"\n## qedge {name}\n\n    qedge {name} {usage}\n\n{_paragraphs(command.help or '')}\n")
        if rows := list(_table(command, without=shared)):
            parts += ["\n", *rows]
        if command.epilog:
            parts.append(f"\n{_paragraphs(command.epilog)}\n")
    return "".join(parts)


def _options(command: click.Command) -> list[click.Option]:
    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


def _table(
    command: click.Command, *, only: set[str] | None = None, without: frozenset[str] | set[str] = frozenset()
) -> Iterator[str]:
    rows = [o for o in _options(command) if o.name not in without and (only is None or o.name in only)]
    if rows:
        yield "| option | default | effect |\n|---|---|---|\n"
    for option in rows:
        effect, default = split_help(option)
        if option.envvar:
            effect += f" Also from the environment: `{option.envvar}`."
        spelling = _spelling(option).replace("|", "\\|")  # also within code, a bare one ends the cell
        yield f"| `{spelling}` | {default} | {effect} |\n"


def split_help(option: click.Option) -> tuple[str, str]:
    """Effect and default of an option: the default is declared, or said at the end of the help."""
    found = re.fullmatch(r"(.*?)(?:\s+\[default: (.*)\])?", option.help or "", re.DOTALL)
    assert found
    default = found[2] or ("off" if option.is_flag else f"`{option.default}`")
    return found[1], default


def _spelling(option: click.Option) -> str:
    name = max(option.opts, key=len)
    if option.is_flag:
        return name
    if isinstance(option.type, click.Choice):
        return f"{name} {'|'.join(option.type.choices)}"
    return f"{name} {option.type.name.upper().removesuffix(' RANGE')}"


def _paragraphs(text: str) -> str:
    """click's own marks → Markdown: a paragraph after `\\b` keeps its lines."""
    parts: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if paragraph.startswith("\b"):
            title, *lines = paragraph.removeprefix("\b\n").split("\n")
            parts.append(f"{title}\n\n" + "\n".join(f"    {line.strip()}" for line in lines))
        else:
            parts.append(" ".join(paragraph.split()))
    return "\n\n".join(parts)


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
