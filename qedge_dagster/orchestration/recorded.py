"""What the command line ingested, as settings in the Dagster home: its code location is made of them."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml
from filelock import FileLock

from qedge_dagster.hashing import hash_fields
from qedge_dagster.orchestration.settings import IngestionSettings

__all__ = ["Record", "read_recorded", "record"]

_FOLDER = "qedge"
_LONGEST_NAME = 40
# Paths of recorded settings are absolute.
_ROOT = Path("/")


def read_recorded(home: Path) -> tuple[dict[Path, IngestionSettings], dict[Path, Exception]]:
    """The settings in a home by their files, in the order of the files' names, and why others could not be read."""
    found: dict[Path, IngestionSettings] = {}
    broken: dict[Path, Exception] = {}
    for path in sorted((home / _FOLDER).glob("*.yaml")):
        try:
            found[path] = IngestionSettings.model_validate(yaml.safe_load(path.read_text("utf-8")))
        except Exception as error:  # whatever an editor or another release left there
            broken[path] = error
    return found, broken


@dataclass(frozen=True)
class Record:
    """`settings` have the name that tells their source apart in this home, and are those to run with."""

    settings: IngestionSettings
    path: Path
    is_new: bool

    def forget(self) -> None:
        """Leave no trace of a first run that came to nothing."""
        if self.is_new:
            self.path.unlink(missing_ok=True)


def record(home: Path, settings: IngestionSettings) -> Record:
    """Keep the settings, whose paths are absolute, in the home: one file for each database, collection and source.

    Listed files add up: none was meant to go because it was not named again. Raises `OSError`.
    """
    folder = home / _FOLDER
    folder.mkdir(exist_ok=True)
    path = folder / f"{settings.target(_ROOT).resource_key}.yaml"
    with FileLock(folder / ".lock"):  # names are given one at a time
        is_new = not path.exists()
        others, _ = read_recorded(home)
        before = others.pop(path, None)
        named = settings.model_copy(update={"name": _name(settings, before, others.values())})
        kept = named
        if before is not None and named.source.files:
            files = list(dict.fromkeys([*before.source.files, *named.source.files]))
            kept = named.model_copy(update={"source": named.source.model_copy(update={"files": files})})
        _write(path, yaml.safe_dump(kept.model_dump(mode="json"), sort_keys=False))
    return Record(named, path, is_new)


def _name(
    settings: IngestionSettings, before: IngestionSettings | None, others: Iterable[IngestionSettings]
) -> str | None:
    """None where the collection's name is enough. A name stays as it is, so that an asset keeps its history."""
    taken = {other.target(_ROOT).identifier for other in others}
    plain = settings.model_copy(update={"name": before.name if before is not None else None})
    target = plain.target(_ROOT)
    if target.identifier not in taken:
        return plain.name
    source_id = target.source.source_id
    readable = re.sub(r"[^A-Za-z0-9]+", "_", source_id).strip("_")[-_LONGEST_NAME:].strip("_")
    return f"{readable or 'source'}_{hash_fields((settings.database, source_id)).hex()[:6]}"


def _write(path: Path, text: str) -> None:
    """Whole or not at all: a code location may be reading."""
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
