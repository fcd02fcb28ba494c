"""Object stores, archives and remote disks as a source, through fsspec."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from qedge_dagster.documents import media_type_for
from qedge_dagster.errors import QedgeError
from qedge_dagster.sources.base import SourceItem, UnlistedPart, check_id
from qedge_dagster.sources.items import reopenable
from qedge_dagster.sources.names import document_names, printable
from qedge_dagster.sources.patterns import Selection

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

__all__ = ["FsspecSource", "public_url"]

#: What stands before an @ is a login here, and a container there. Of other protocols it is not known.
_WITH_LOGIN = frozenset({"sftp", "ssh", "ftp", "smb", "http", "https", "webdav", "webhdfs", "hdfs"})
_WITH_CONTAINER = frozenset({"abfs", "abfss", "az", "adl", "wasb", "wasbs"})

#: Fields of fsspec's listings that stand for the content, the surest first, and for its time.
_CHECKSUMS = ("md5Hash", "crc32c", "ETag", "etag", "CRC")
_TIMES = ("LastModified", "last_modified", "updated", "mtime", "modified", "created")


class FsspecSource:
    """The files below a URL that fsspec knows: `s3://bucket/prefix`, `gcs://…`, `abfs://…`, `sftp://host/folder`,
    `zip://::s3://bucket/archive.zip`, `memory://…`. Ids, patterns, order and what is left out are those of
    `FolderSource`: the same tree has the same ids wherever it lies.

    * `storage_options` go to fsspec as they are: the endpoint, a profile, credentials. They are kept in memory alone;
      fsspec also finds them in its own configuration and environment.
    * `source_id`: by default the URL without login and password. Where it has a query, which may hold a token, or a
      login whose meaning is not known, an id must be given.
    * What a store tells of an object's content (an ETag, an MD5, the CRC of an archive) stands in `modified_utc`, in
      place of a time: so `trust_timestamps` and the sensor go by it.

    Retries and timeouts are the store's client's, and set by `storage_options`. One request lists one folder.
    """

    def __init__(
        self,
        url: str,
        pattern: str | Sequence[str] = "*",
        recursive: bool = True,
        exclude: str | Sequence[str] = (),
        source_id: str | None = None,
        include_hidden: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Raises `QedgeError` 6005 for a URL or pattern that cannot be used, or where the library for the URL's
        protocol is not installed, 6055 for an unusable source id."""
        location, is_whole = public_url(url)
        _check_protocols(url, location)
        #: The URL, fit to be shown.
        self.location = location
        if source_id is None:
            if not is_whole:
                raise QedgeError(
                    6005,
                    f"{location}: the URL has a query or a login, which must not be stored and may tell sources apart",
                    remedy="give a source_id that stays the same from run to run",
                )
            source_id = location
        self.source_id = check_id(source_id, "source id")
        self._selection = Selection(pattern, exclude, recursive=recursive, include_hidden=include_hidden)
        self._url = url
        self._options = dict(storage_options or {})

    def items(self) -> Iterator[SourceItem | UnlistedPart]:
        """Lists each folder when it is reached. A subfolder that cannot be listed, for whatever reason, is an
        `UnlistedPart`. Raises `QedgeError` 6051 before any item if the root is missing or cannot be listed. In an
        object store a prefix without objects is missing."""
        from fsspec.core import url_to_fs

        try:
            filesystem, root = url_to_fs(self._url, **self._options)
            filesystem.invalidate_cache()  # clients are shared within the process, with what they listed before
            pending = [self._listing(filesystem, root, "")]
        except QedgeError:
            raise
        except Exception as error:  # whatever the client of a store raises; its message may hold the whole URL
            raise QedgeError(6051, f"{self.location} cannot be listed: {_reason(error)}") from None
        while pending:
            for document_id, info in pending[-1]:
                path = info["name"]
                if document_id.endswith("//") or document_id == "/":
                    yield UnlistedPart(document_id, "a folder without a name")
                    continue
                try:
                    if document_id[-1] == "/":
                        pending.append(self._listing(filesystem, path, document_id))
                        break
                    if info["type"] != "file":  # a link
                        info = filesystem.info(path)
                except Exception as error:
                    yield UnlistedPart(document_id, _reason(error))
                    continue
                if info["type"] == "file":
                    yield _item(filesystem, path, document_id, info)
            else:
                pending.pop()

    def _listing(
        self, filesystem: AbstractFileSystem, folder: str, prefix: str
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """The entries of one folder by id; that of a folder ends in `/`. Raises whatever the store's client raises."""
        names: list[str] = []
        entries: list[dict[str, Any]] = []
        for info in cast("list[dict[str, Any]]", filesystem.ls(folder, detail=True)):
            path: str = info["name"]
            if path.rstrip("/") == folder.rstrip("/"):
                if info["type"] == "file" and not path.endswith("/"):
                    raise NotADirectoryError(errno.ENOTDIR, "not a directory")
                if info["type"] == "directory" and path.endswith("/") and path != folder:  # of the key `a//b`
                    names.append("/")
                    entries.append(info)
                continue  # the folder itself, or the object by which a store marks it
            name = path.rstrip("/").rpartition("/")[2]
            is_folder = info["type"] == "directory"
            if not self._selection.shows(name) or (is_folder and not self._selection.recursive):
                continue
            names.append(name + "/" if is_folder else name)
            entries.append(info)
        return iter(self._selection.select(prefix, document_names(names, on_disk=False), entries))


def public_url(url: str) -> tuple[str, bool]:
    """The URL without what may be secret, and whether the rest surely names one place only."""
    parts: list[str] = []
    is_whole = True
    for part in url.split("::"):
        protocol, found, rest = part.partition("://")
        if not found:
            parts.append(part)
            continue
        rest, query, _ = rest.partition("?")
        host, slash, path = rest.partition("/")
        login, _, bare = host.rpartition("@")
        if login and (protocol not in _WITH_CONTAINER or ":" in login):
            host = bare
            is_whole = is_whole and protocol in _WITH_LOGIN
        if ":" in host and not host.rpartition(":")[2].isdigit():  # no port: a login with a slash in it
            host, path, is_whole = "", "", False
        is_whole = is_whole and not query
        parts.append(f"{protocol}://{host}{slash}{path}".rstrip("/") if host or path else f"{protocol}://")
    return printable("::".join(parts)), is_whole


def _check_protocols(url: str, location: str) -> None:
    if "://" not in url:
        raise QedgeError(6005, f"{location!r} is no URL", remedy="FolderSource takes a path")
    try:
        from fsspec import get_filesystem_class

        for part in url.split("::"):
            protocol, found, _ = part.partition("://")
            if found:
                get_filesystem_class(protocol)
    except ImportError as error:
        if error.name == "fsspec":
            raise QedgeError(6005, "fsspec is missing", remedy='pip install "qedge-dagster[fsspec]"') from error
        raise QedgeError(6005, f"{location}: the library of this protocol is missing", remedy=str(error)) from error
    except ValueError as error:
        raise QedgeError(6005, f"{location}: fsspec knows no such protocol") from error


def _item(filesystem: AbstractFileSystem, path: str, document_id: str, info: Mapping[str, Any]) -> SourceItem:
    size = info.get("size")
    return reopenable(
        SourceItem(
            document_id,
            media_type_for(document_id),
            partial(_open, filesystem, path),
            size_bytes=int(size) if size is not None else None,
            modified_utc=_version(info),
        )
    )


def _open(filesystem: AbstractFileSystem, path: str) -> BinaryIO:
    # What was listed is out of date if the object was written since: its size would cut the new content short.
    filesystem.invalidate_cache(path)
    return cast("BinaryIO", filesystem.open(path, "rb"))


def _version(info: Mapping[str, Any]) -> str | None:
    """What changes with the content, by the store's own word; compared for equality only."""
    for field in _CHECKSUMS:
        value = info.get(field)
        if isinstance(value, (str, int)) and value != "":
            return printable(f"{field.lower()}:{str(value).strip(chr(34))}")
    for field in _TIMES:
        value = info.get(field)
        if isinstance(value, (int, float)):
            value = datetime.fromtimestamp(value, timezone.utc)
        if isinstance(value, datetime):
            return value.isoformat()
        if isinstance(value, str) and value:
            return printable(value)
    return None


def _reason(error: Exception) -> str:
    """Of the error no more than its kind: clients quote URLs, and some of these are signed."""
    if isinstance(error, OSError) and isinstance(error.errno, int):
        return os.strerror(error.errno)
    return type(error).__name__
