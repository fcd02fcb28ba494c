"""Options that several commands share. Each decorator adds one group; the functions turn the values into objects.

Nothing heavy is imported at the top: `qedge --help` and `qedge status` read this module too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from qedge_dagster.chunking.base import ChunkingOptions

__all__ = [
    "TEXT",
    "chunking_options",
    "common",
    "common_without_collection",
    "group",
    "model_options",
    "read_chunking",
    "source_id_option",
]

Function = TypeVar("Function", bound=Callable[..., Any])


def group(*decorators: Callable[[Any], Any]) -> Callable[[Function], Function]:
    def decorate(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


class _Text(click.types.StringParamType):
    """A word of the command line that the database can look for: not one with bytes that are no text."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = super().convert(value, param, ctx)
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail(f"{text!r} is not valid Unicode", param, ctx)
        return text


TEXT = _Text()


def _remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta["debug"] = value


def _utf8(_context: click.Context, _parameter: click.Parameter, value: Path) -> Path:
    try:
        str(value).encode()
    except UnicodeEncodeError:
        raise click.BadParameter("SQLite takes file names in UTF-8 only") from None
    return value


_database = group(
    click.option(
        "--db",
        "database",
        type=click.Path(dir_okay=False, path_type=Path),
        default="qedge.db",
        envvar="QEDGE_DB",
        show_default=True,
        show_envvar=True,
        callback=_utf8,
        help="The database file.",
    ),
)
_collection = click.option("--collection", default="chunks", show_default=True, help="The collection in the database.")
_output = group(
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else, on stdout."),
    click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=_remember_debug,
        help="On an error, print the traceback too.",
    ),
)

#: Every command has these; `qedge ui` shows all collections of a home.
common = group(_database, _collection, _output)
common_without_collection = group(_database, _output)

model_options = group(
    click.option(
        "--model",
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder with model.onnx and tokenizer.json or vocab.txt.  [default: the installed all-MiniLM-L6-v2]",
    ),
    click.option(
        "--profile",
        type=click.Choice(
            ["all-minilm-l6-v2-int8", "all-minilm-l6-v2-fp32", "bge-small-en-v1.5", "nomic-embed-text-v1.5-int8"]
        ),
        help="What kind of model --model holds.  [default: what profile.json in the folder says]",
    ),
)

source_id_option = click.option(
    "--source-id", type=TEXT, help="The source of the document.  [default: the only one that has it]"
)


def _levels(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        return tuple(int(level) for level in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is no list of heading levels such as 1,2,3") from None


chunking_options = group(
    click.option(
        "--chunker",
        type=click.Choice(["auto", "markdown-heading", "plain", "token-window"]),
        default="auto",
        show_default=True,
        help="How documents are cut. auto: by headings where a document has any, else by paragraphs.",
    ),
    click.option(
        "--chunk-tokens",
        "max_tokens",
        type=int,
        help="Largest chunk, in tokens.  [default: what the model takes; 222 for the default model]",
    ),
    click.option(
        "--overlap",
        type=int,
        help="Tokens that pieces of one section share.  [default: 15 % of --chunk-tokens, in multiples of 8]",
    ),
    click.option(
        "--min-tokens",
        type=int,
        help="Sections shorter than this join the next one.  [default: an eighth of --chunk-tokens, at least 16]",
    ),
    click.option(
        "--max-characters", type=int, help="Largest chunk, in characters.  [default: ten times --chunk-tokens]"
    ),
    click.option(
        "--heading-tokens",
        "heading_path_token_budget",
        type=int,
        default=32,
        show_default=True,
        help="Tokens kept free for the headings above a chunk.",
    ),
    click.option(
        "--split-levels",
        default="1,2,3",
        show_default=True,
        callback=_levels,
        help="Heading levels that begin a new chunk, separated by commas.",
    ),
    click.option(
        "--overflow",
        type=click.Choice(["split", "truncate", "throw"]),
        default="split",
        show_default=True,
        help="What to do with a passage that is longer than a chunk. throw: the document fails (6152).",
    ),
)


def read_chunking(values: Mapping[str, Any]) -> ChunkingOptions:
    """The chunking options among a command's parameters."""
    from dataclasses import fields

    from qedge_dagster.chunking.base import ChunkingOptions

    return ChunkingOptions(**{field.name: values[field.name] for field in fields(ChunkingOptions)})
