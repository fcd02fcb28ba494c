"""PATH arguments → a source."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qedge_dagster.cli.home import dagster_home
from qedge_dagster.cli.options import group
from qedge_dagster.errors import QedgeError

if TYPE_CHECKING:
    from qedge_dagster.sources import FilesSource, FolderSource
    from qedge_dagster.sources.fsspec import FsspecSource

__all__ = ["GIVEN_PATH", "excluded", "files_source", "source_options", "tree_source"]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z][A-Za-z0-9+.-]+)*://")

#: Files named one by one are one source, so that naming the same file again finds its state.
_FILES_SOURCE_ID = "files"


class _GivenPath(click.Path):
    """A URL of a store stays text. The empty string, as of an unset shell variable, is no path; `Path` would take it
    for the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty", param, ctx)
        if isinstance(value, str) and _URL.match(value):
            return value
        return super().convert(value, param, ctx)


GIVEN_PATH = _GivenPath(path_type=Path)

source_options = group(
    click.option(
        "--pattern",
        "patterns",
        multiple=True,
        help="Take only files whose name matches, such as '*.md'; with a / in it, whose path does. May be repeated."
        "  [default: every file]",
    ),
    click.option(
        "--exclude",
        multiple=True,
        help="Leave out files and folders that match, such as drafts. May be repeated.  [default: none]",
    ),
    click.option(
        "--source-id",
        help="Name of the source. It must stay the same from run to run.  [default: the path of the folder]",
    ),
    click.option("--hidden", "include_hidden", is_flag=True, help="Take hidden files and folders too."),
)


def tree_source(
    place: Path | str,
    database: Path,
    *,
    patterns: Sequence[str],
    exclude: Sequence[str],
    source_id: str | None,
    include_hidden: bool,
) -> FolderSource | FsspecSource:
    """A folder, or a store by its URL. Raises `QedgeError` 6005 for a URL with a login or a query: what was ingested is
    kept in the Dagster home."""
    if isinstance(place, str):
        from qedge_dagster.sources.fsspec import FsspecSource, public_url

        location, _ = public_url(place)
        if location.rstrip("/") != place.rstrip("/"):
            raise QedgeError(
                6005,
                f"{location}: a URL on the command line must hold no login and no query",
                remedy="let fsspec read credentials from the environment or its own configuration",
            )
        return FsspecSource(place, patterns or "*", exclude=exclude, source_id=source_id, include_hidden=include_hidden)
    from qedge_dagster.sources import FolderSource

    return FolderSource(
        place,
        patterns or "*",
        exclude=excluded(place, database, exclude),
        source_id=source_id,
        include_hidden=include_hidden,
    )


def excluded(path: Path, database: Path, exclude: Sequence[str]) -> list[str]:
    """`exclude`, and where they lie in the folder `path`, the database with all that belongs to it, and the Dagster
    home: none of them is a document."""
    folder = path.resolve()
    own = [f"{database.resolve()}{end}" for end in ("", "-*", ".artifacts", ".dagster")]
    own.append(str(dagster_home(database).resolve()))
    return [*exclude, *dict.fromkeys(pattern for name in own if (pattern := _below(folder, Path(name))))]


def _below(folder: Path, path: Path) -> str | None:
    """The pattern of a path; the leading / ties it to the root of the source."""
    if path == folder or not path.is_relative_to(folder):
        return None
    name = path.relative_to(folder).as_posix()
    return "/" + (glob.escape(name[:-1]) + "*" if name.endswith("-*") else glob.escape(name))


def files_source(paths: Sequence[Path], source_id: str | None) -> FilesSource:
    """Raises `QedgeError` 6051 for a file that is not there: it was named on purpose."""
    from qedge_dagster.sources import FilesSource

    for path in paths:
        if not path.exists():
            raise QedgeError(6051, f"there is no file or folder {path}")
    return FilesSource(paths, source_id or _FILES_SOURCE_ID)
