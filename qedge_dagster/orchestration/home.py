"""The folder of a Dagster instance."""

from __future__ import annotations

import os
import tempfile
from importlib.resources import files
from pathlib import Path

__all__ = ["prepare_home"]

_SETTINGS = "dagster.yaml"


def prepare_home(home: Path) -> None:
    """Make `home`, and the parents that it lacks, ready to be `DAGSTER_HOME`: with the settings that this package wants
    of an instance, unless there are some already. A file that exists is left as it is. Raises `OSError`."""
    home.mkdir(parents=True, exist_ok=True)
    target = home / _SETTINGS
    if target.exists():
        return
    # Complete under its name from the first moment, and never in the place of another.
    descriptor, draft = tempfile.mkstemp(dir=home, prefix=f".{_SETTINGS}-")
    try:
        with open(descriptor, "wb") as stream:
            stream.write(files("qedge_dagster.orchestration").joinpath(_SETTINGS).read_bytes())
        os.chmod(draft, 0o644)
        try:
            os.link(draft, target)
        except FileExistsError:  # another process was first
            pass
        except OSError:  # a file system without links
            os.replace(draft, target)
    finally:
        Path(draft).unlink(missing_ok=True)
