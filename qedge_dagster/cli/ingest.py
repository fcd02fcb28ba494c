"""`qedge ingest`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qedge_dagster.cli.formats import extraction_arguments, format_options
from qedge_dagster.cli.home import dagster_home
from qedge_dagster.cli.opening import PROFILE_ALONE, existing_artifacts, open_pipeline
from qedge_dagster.cli.options import chunking_options, common, group, model_options, read_chunking
from qedge_dagster.cli.sourcing import GIVEN_PATH, files_source, source_options, tree_source
from qedge_dagster.errors import QedgeError

if TYPE_CHECKING:
    from qedge_dagster.pipeline.options import RunOptions
    from qedge_dagster.pipeline.results import RunResult
    from qedge_dagster.sources.base import Source

#: Fields of `IngestionOptions` that the command line takes as they are.
_SETTINGS = (
    "distance",
    "fts_tokenizer",
    "first_migration",
    "synchronous",
    "extraction_seconds",
    "throttle",
    "when_paused",
)

_EPILOG = """\b
Examples:
  qedge ingest docs --pattern '*.md' --pattern '*.txt'
  qedge ingest docs --budget background        # at most about five minutes
  qedge ingest docs --max-documents 100 --json
  qedge ingest report.md notes.txt             # single files
  qedge ingest docs --exclude drafts --db team.db --collection handbook
  qedge ingest s3://bucket/handbook            # with the extra [fsspec] and s3fs

Run the same command again whenever you like: unchanged documents cost one read, and only chunks that changed are
embedded. A run that was suspended or stopped goes on where it was."""


budget_options = group(
    click.option(
        "--budget",
        type=click.Choice(["unlimited", "quick", "background"]),
        default="unlimited",
        show_default=True,
        help="How much one run may do: quick is 20 seconds, background 5 minutes. Then it is suspended (exit code 75).",
    ),
    click.option("--max-seconds", "max_duration", type=float, help="Suspend after this time.  [default: --budget's]"),
    click.option(
        "--max-documents", type=int, help="Suspend after so many new or changed documents.  [default: no limit]"
    ),
    click.option("--max-chunks", type=int, help="Suspend after so many new chunks.  [default: no limit]"),
    click.option(
        "--max-tokens", "max_run_tokens", type=int, help="Suspend after so many embedded tokens.  [default: no limit]"
    ),
)

run_options = group(
    click.option("--force", is_flag=True, help="Process every document, changed or not."),
    click.option(
        "--rebuild",
        is_flag=True,
        help="Re-embed with another model; the old vectors answer until the new are complete.",
    ),
    click.option(
        "--no-prune", is_flag=True, help="Keep documents that the folder no longer holds or the patterns leave out."
    ),
    click.option("--allow-empty", is_flag=True, help="Remove all documents when the folder holds none at all."),
    click.option("--fail-fast", is_flag=True, help="Let the first document that fails end the run."),
    click.option(
        "--strict-recipe", is_flag=True, help="Refuse (6009) to index documents again because options changed."
    ),
    click.option(
        "--trust-timestamps", is_flag=True, help="Do not read documents whose size and modification time are unchanged."
    ),
    click.option("--quiet", is_flag=True, help="No progress on stderr."),
    click.option(
        "--no-dagster", is_flag=True, help="Run without Dagster: starts faster, and `qedge ui` will not show the run."
    ),
)

collection_options = group(
    click.option(
        "--fts-tokenizer",
        type=click.Choice(["unicode61", "porter", "trigram"]),
        help="How a new collection splits text into words; trigram for Chinese, Japanese, Thai.  [default: unicode61]",
    ),
    click.option(
        "--distance",
        type=click.Choice(["cosine", "l2"]),
        help="How a new collection compares vectors.  [default: cosine]",
    ),
    click.option(
        "--first-migration",
        type=int,
        default=1,
        show_default=True,
        help="First of the two PRAGMA user_version numbers a new database claims.",
    ),
    click.option(
        "--max-document-mib",
        type=click.IntRange(min=1),
        default=32,
        show_default=True,
        help="Largest file, in MiB. A larger one fails with 6052.",
    ),
    click.option(
        "--synchronous",
        type=click.Choice(["normal", "full"]),
        default="normal",
        show_default=True,
        help="full: even a power cut loses no commit.",
    ),
    click.option(
        "--throttle",
        type=click.Choice(["fixed", "machine"]),
        default="fixed",
        show_default=True,
        help="machine: go slower or pause where memory, heat or the battery ask for it.",
    ),
    click.option(
        "--when-paused",
        type=click.Choice(["suspend", "wait"]),
        default="suspend",
        show_default=True,
        help="With --throttle machine: end the run to be run again, or wait.",
    ),
)


@click.command(epilog=_EPILOG, short_help="Read a folder, files or a store into the collection.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=GIVEN_PATH)
@source_options
@budget_options
@run_options
@model_options
@chunking_options
@collection_options
@format_options
@common
@click.pass_context
def command(
    ctx: click.Context,
    database: Path,
    collection: str,
    as_json: bool,
    quiet: bool,
    no_dagster: bool,
    **values: Any,
) -> None:
    """Read one folder, or one or more files, into the collection.

    Documents that the folder no longer holds, or that --pattern and --exclude no longer select, are removed after a
    completed run, unless a part of the folder could not be read. A folder that was moved or renamed is another source:
    drop the old one with `qedge remove --all`, or give it the same --source-id from the start.
    Files that are named one by one belong to the source "files" and are never removed; their id is the path as given.
    PATH may be the URL of a store that fsspec knows, and is then what a folder is; credentials come from the
    environment or fsspec's own configuration.

    The run is one of Dagster, in this process: its history is in the Dagster home, which is $DAGSTER_HOME, or else the
    folder DATABASE.dagster beside the database. `qedge ui` shows it, and keeps the documents up to date while it runs;
    after --no-prune it removes none. The home holds history only: it may be deleted.
    """
    from qedge_dagster.cli.summary import show_result

    run = _run_engine if no_dagster else _run_dagster
    ctx.exit(show_result(run(database, collection, quiet, values), as_json=as_json))


def _run_engine(database: Path, collection: str, quiet: bool, values: Mapping[str, Any]) -> RunResult:
    from qedge_dagster.cli.interrupt import cancel_on_signals
    from qedge_dagster.cli.progress import progress

    source, options = _source(database, values), _run_options(values)
    pipeline = open_pipeline(
        database,
        collection,
        chunking=read_chunking(values),
        **{name: values[name] for name in ("model", "profile", *_SETTINGS)},
        extraction=extraction_arguments(values),
        max_document_bytes=values["max_document_mib"] * 1024 * 1024,
        extraction_memory=values["extraction_mib"] * 1024 * 1024,
        artifacts=existing_artifacts(database),
    )
    with pipeline, cancel_on_signals(pipeline.cancel), progress(quiet=quiet) as count:
        return pipeline.run(source, options=options, on_event=count)


def _run_dagster(database: Path, collection: str, quiet: bool, values: Mapping[str, Any]) -> RunResult:
    from qedge_dagster.cli.interrupt import cancel_on_signals
    from qedge_dagster.cli.progress import progress
    from qedge_dagster.cli.settings import ingestion_settings, op_config

    # What is wrong with the command line is said before anything heavy is loaded.
    source, options = _source(database, values), _run_options(values)
    if values["profile"] and not values["model"]:
        raise click.UsageError(PROFILE_ALONE)
    if not database.absolute().parent.is_dir():  # which making the home would hide
        raise QedgeError(6002, f"{database} cannot be opened: unable to open database file")
    settings = ingestion_settings(database, collection, source.source_id, options, values)

    from qedge_dagster.cli.orchestrated import OrchestratedRun

    with progress(quiet=quiet) as count:
        run = OrchestratedRun(dagster_home(database), settings, count, values["pdf_passwords"])
        with cancel_on_signals(run.cancel):
            return run.run(op_config(options))


def _source(database: Path, values: Mapping[str, Any]) -> Source:
    selection = {name: values[name] for name in ("patterns", "exclude", "include_hidden")}
    given: list[Path | str] = list(values["paths"])
    paths = [path for path in given if isinstance(path, Path)]
    if len(paths) < len(given) > 1:
        raise click.UsageError(f"give one URL alone, not {len(given)} paths")
    if len(paths) == 1 and not paths[0].exists() and not database.exists():  # a run of nothing would leave a database
        raise QedgeError(6051, f"there is no file or folder {paths[0]}")
    folders = [path for path in paths if path.is_dir()]
    if len(paths) > 1 and folders:
        raise click.UsageError(f"give one folder or several files, not {len(paths)} paths with {folders[0]} among them")
    if folders or not paths or not paths[0].exists():
        return tree_source(given[0], database, source_id=values["source_id"], **selection)
    if any(selection.values()):
        raise click.UsageError("--pattern, --exclude and --hidden select from a folder, not from files given by name")
    return files_source(paths, values["source_id"])


def _run_options(values: Mapping[str, Any]) -> RunOptions:
    from qedge_dagster.pipeline.options import IngestionBudget, RunOptions

    budget: IngestionBudget = getattr(IngestionBudget, values["budget"].upper())
    limits = {
        "max_duration": values["max_duration"],
        "max_documents": values["max_documents"],
        "max_chunks": values["max_chunks"],
        "max_tokens": values["max_run_tokens"],
    }
    first: Path | str = values["paths"][0]
    names_a_folder = len(values["paths"]) == 1 and (isinstance(first, str) or not first.is_file())
    return RunOptions(
        budget=replace(budget, **{name: limit for name, limit in limits.items() if limit is not None}),
        force=values["force"],
        rebuild=values["rebuild"],
        delete_missing=names_a_folder and not values["no_prune"],
        allow_empty=values["allow_empty"],
        fail_fast=values["fail_fast"],
        strict_recipe=values["strict_recipe"],
        trust_timestamps=values["trust_timestamps"],
    )
