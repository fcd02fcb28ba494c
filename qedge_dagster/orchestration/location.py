"""The code location of a Dagster home: every source that the command line ingested there.

DAGSTER_HOME=notes.db.dagster dagster dev -m qedge_dagster.orchestration.location
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from dagster import Definitions, definitions

from qedge_dagster.orchestration.recorded import read_recorded

__all__ = ["build_location", "defs"]

_log = logging.getLogger("dagster.qedge")


def build_location(home: Path) -> Definitions:
    """The definitions of all settings that are recorded in `home`. Those that cannot be used are left out with a
    warning. Raises `RuntimeError` where none can."""
    found, broken = read_recorded(home)
    usable: dict[str, Definitions] = {}
    for path, settings in found.items():
        try:
            root = path.parent  # recorded paths are absolute
            identifier = settings.target(root).identifier
            if identifier in usable:
                raise ValueError(f"another source has the name {identifier}: ingest this one again")
            definitions = settings.definitions(root)
            Definitions.validate_loadable(definitions)
            usable[identifier] = definitions
        except Exception as error:  # one source must not take the others down
            broken[path] = error
    for path, error in broken.items():
        _log.warning("%s is left out: %s", path, error)
    if not usable:
        raise RuntimeError(f"{home} holds no ingestion that can be shown: run `qedge ingest PATH` first")
    return Definitions.merge(*usable.values())


@definitions
def defs() -> Definitions:
    """Called by Dagster when it loads this module as a code location."""
    return build_location(Path(os.environ["DAGSTER_HOME"]))
