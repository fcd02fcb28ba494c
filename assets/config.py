"""What this code location is about: by environment, with defaults that work in a fresh clone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CONFIG", "LocationConfig"]

_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class LocationConfig:
    """`max_duration` is in seconds: how long one run may take before the next tick of the sensor goes on."""

    folder: Path
    database: Path
    pattern: str
    collection: str
    max_duration: float

    @classmethod
    def from_environment(cls) -> LocationConfig:
        variable = os.environ.get
        return cls(
            folder=Path(variable("QEDGE_FOLDER", str(_ROOT / "examples" / "docs"))),
            database=Path(variable("QEDGE_DATABASE", str(_ROOT / "documents.db"))),
            pattern=variable("QEDGE_PATTERN", "*"),
            collection=variable("QEDGE_COLLECTION", "documents"),
            max_duration=float(variable("QEDGE_MAX_DURATION", "300")),
        )


CONFIG = LocationConfig.from_environment()
