"""Where the Dagster home of a database is."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["dagster_home"]


def dagster_home(database: Path) -> Path:
    """`$DAGSTER_HOME`, else the folder `<database>.dagster` beside the file; absolute. It need not exist."""
    given = os.environ.get("DAGSTER_HOME")
    return Path(given).expanduser().absolute() if given else Path(f"{database.absolute()}.dagster")
