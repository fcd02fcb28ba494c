"""Where the Dagster home of a database is."""

from __future__ import annotations

import os
from pathlib import Path

import yaml

__all__ = ["LOCATION", "RECORDS", "dagster_home", "forget_source"]

#: The folder in a home with the settings of each source, as `orchestration.recorded` writes them.
RECORDS = "qedge"

#: The code location that is made of them.
LOCATION = "qedge_dagster.orchestration.location"


def dagster_home(database: Path) -> Path:
    """`$DAGSTER_HOME`, else the folder `<database>.dagster` beside the file, whatever link leads to it; absolute. It
    need not exist."""
    given = os.environ.get("DAGSTER_HOME")
    return Path(given).expanduser().absolute() if given else Path(f"{database.resolve()}.dagster")


def forget_source(database: Path, collection: str, source_id: str) -> None:
    """Take a source out of what `qedge ui` shows: its sensor would ingest it again. Done without Dagster, which is slow
    to load."""
    sought = (str(database.resolve()), collection, source_id)
    for path in (dagster_home(database) / RECORDS).glob("*.yaml"):
        try:
            settings = yaml.safe_load(path.read_text("utf-8"))
            found = (settings["database"], settings["collection"], settings["source"]["id"])
        except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError):  # no record of ours
            continue
        if found == sought:
            path.unlink(missing_ok=True)
