"""A folder as a source."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from qedge_dagster.errors import QedgeError
from qedge_dagster.sources.base import SourceItem, UnlistedPart, check_id
from qedge_dagster.sources.files import file_item
from qedge_dagster.sources.names import document_names, printable
from qedge_dagster.sources.patterns import Selection

__all__ = ["FolderSource"]


class FolderSource:
    """The regular files below a folder, in the order of their ids. An id is the forward-slash path below the folder
    (`sources.names` has the rules for odd names), so the same tree has the same ids on every machine.

    * `pattern`, `exclude`: one glob or several. Without `/` it is for names at any depth, with `/` for the path from
      the root, where `**/` stands for any folders. An excluded folder is not entered.
    * Hidden names (`.…`) and Office lock files (`~$…`) are left out unless `include_hidden`.
    * Links to files are read, links to folders are not followed; FIFOs, sockets and devices are left out.
    * `source_id`: by default the resolved path of the folder, so that every way to name the folder on this machine is
      the same source. Give one where the folder moves, or where several machines share a database.

    Memory is bounded by the largest folder on the current path, not by the tree.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        pattern: str | Sequence[str] = "*",
        recursive: bool = True,
        exclude: str | Sequence[str] = (),
        source_id: str | None = None,
        include_hidden: bool = False,
    ) -> None:
        """Raises `QedgeError` 6005 for an empty path or pattern, 6055 for an unusable source id."""
        given = os.fspath(path)
        if not given:
            raise QedgeError(6005, "the path of a folder source must not be empty")
        self.path = os.path.abspath(given)
        if source_id is None:
            source_id = printable(os.path.realpath(given).replace(os.sep, "/"))
        self.source_id = check_id(source_id, "source id")
        self._selection = Selection(pattern, exclude, recursive=recursive, include_hidden=include_hidden)

    def items(self) -> Iterator[SourceItem | UnlistedPart]:
        """Lists each folder when it is reached. A subfolder or entry that cannot be examined, say a dangling link, is
        an `UnlistedPart`. Raises `QedgeError` 6051 before any item if the folder itself cannot be listed, and as soon
        as it is no longer there: moved, deleted or unmounted."""
        try:
            root = os.stat(self.path)
            pending = [self._listing(self.path, "")]
        except OSError as error:
            raise QedgeError(6051, f"{printable(self.path)} cannot be listed: {error.strerror}") from error
        while pending:
            for document_id, entry in pending[-1]:
                try:
                    if document_id[-1] == "/":
                        pending.append(self._listing(entry.path, document_id))
                        break
                    facts = entry.stat()
                except OSError as error:
                    self._check_in_place(root)
                    yield UnlistedPart(document_id, error.strerror or type(error).__name__)
                    continue
                if stat.S_ISREG(facts.st_mode):
                    yield file_item(entry.path, document_id, facts)
            else:
                pending.pop()
        self._check_in_place(root)

    def _check_in_place(self, root: os.stat_result) -> None:
        try:
            there = os.path.samestat(os.stat(self.path), root)
        except OSError:
            there = False
        if not there:
            raise QedgeError(6051, f"{printable(self.path)} was moved, deleted or unmounted while it was listed")

    def _listing(self, folder: str, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """The entries of one folder by id; that of a folder ends in `/`."""
        entries: list[os.DirEntry[str]] = []
        names: list[str] = []
        with os.scandir(folder) as found:
            for entry in found:
                name = entry.name
                if not self._selection.shows(name):
                    continue
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder and not self._selection.recursive:
                    continue
                entries.append(entry)
                names.append(name + "/" if is_folder else name)
        return iter(self._selection.select(prefix, document_names(names), entries))
