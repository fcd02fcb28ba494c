"""`qedge ingest`'s command line as settings of the Dagster job, and as the config of one run of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qedge_dagster.cli.formats import docx_settings, pdf_settings
from qedge_dagster.cli.opening import existing_spec
from qedge_dagster.cli.options import read_chunking
from qedge_dagster.cli.sourcing import excluded
from qedge_dagster.pipeline.options import RunOptions

if TYPE_CHECKING:
    from qedge_dagster.orchestration.settings import IngestionSettings

__all__ = ["ingestion_settings", "op_config"]


def ingestion_settings(
    database: Path, collection: str, source_id: str, options: RunOptions, values: Mapping[str, Any]
) -> IngestionSettings:
    """What leads to the same recipe over the same source, on its own: all paths are absolute, and distance and
    full-text tokenizer are those the collection was made with."""
    spec = existing_spec(database, collection)
    chunking = asdict(read_chunking(values))
    if spec is not None:
        values = {**values, **{n: values[n] or getattr(spec, n) for n in ("distance", "fts_tokenizer")}}
    given = {name: values[name] for name in ("distance", "fts_tokenizer") if values[name] is not None}
    model: Path | None = values["model"]

    from qedge_dagster.orchestration.settings import IngestionSettings

    return IngestionSettings.model_validate(
        {
            "database": str(database.resolve()),
            "collection": collection,
            "source": _source_settings(database, source_id, values),
            "model_folder": str(model.absolute()) if model is not None else None,
            "profile": values["profile"],
            "chunking": {**chunking, "split_levels": list(chunking["split_levels"])},
            "strict_utf8": values["strict_utf8"],
            "pdf": pdf_settings(values),
            "docx": docx_settings(values),
            "max_document_bytes": values["max_document_mib"] * 1024 * 1024,
            "extraction_seconds": values["extraction_seconds"],
            "extraction_memory": values["extraction_mib"] * 1024 * 1024,
            "first_migration": values["first_migration"],
            "synchronous": values["synchronous"],
            "throttle": values["throttle"],
            "when_paused": values["when_paused"],
            **given,
            "delete_missing": options.delete_missing,
        }
    )


def _source_settings(database: Path, source_id: str, values: Mapping[str, Any]) -> dict[str, Any]:
    paths: list[Path | str] = list(values["paths"])
    first = paths[0]
    if isinstance(first, Path) and first.is_file():
        return {"files": [str(path) for path in paths], "root": str(Path.cwd()), "id": source_id}
    if isinstance(first, str):
        place = {"url": first, "exclude": list(values["exclude"])}
    else:
        place = {"folder": str(first.absolute()), "exclude": excluded(first, database, values["exclude"])}
    return {
        **place,
        "pattern": list(values["patterns"]) or "*",
        "include_hidden": values["include_hidden"],
        "id": source_id,
    }


def op_config(options: RunOptions) -> dict[str, Any]:
    """All run options by their names, so that the UI shows them; of the budget, the limits that it has."""
    limits = {name: limit for name, limit in asdict(options.budget).items() if limit is not None}
    return {**asdict(options), "budget": limits}
