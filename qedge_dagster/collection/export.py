"""A whole collection as one Parquet file."""

from __future__ import annotations

import os
import secrets
from itertools import islice
from pathlib import Path

from qedge_dagster.collection.arrow import column_fields, embedding_field, vector_column
from qedge_dagster.collection.chunk import COLUMNS, ORDER
from qedge_dagster.collection.snapshot import open_snapshot
from qedge_dagster.errors import QedgeError

__all__ = ["export_parquet"]

# About 10 MB in memory with the default model.
_ROW_GROUP = 2_048


def export_parquet(database_path: Path, name: str, path: Path) -> int:
    """Columns as they are stored, then `embedding` (list of float32, of the collection's dimension). One row group is
    in memory at a time, and the file appears under its name only when it is whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    count = 0
    try:
        with open_snapshot(database_path, name) as (database, spec):
            fields = column_fields(COLUMNS)
            schema = pa.schema([*fields, embedding_field(spec.dimensions)])
            rows = database.connection.execute(
                f"SELECT {', '.join(COLUMNS)}, (SELECT embedding FROM {name}_vec WHERE rowid = _rowid)"
                f" FROM {name} ORDER BY {ORDER}"
            )
            with pq.ParquetWriter(partial, schema, compression="zstd") as writer:
                while group := list(islice(rows, _ROW_GROUP)):
                    *columns, vectors = zip(*group, strict=True)
                    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
                    arrays.append(vector_column(vectors, spec.dimensions))
                    writer.write_table(pa.table(arrays, schema=schema))
                    count += len(group)
        os.replace(partial, path)
    except OSError as error:
        raise QedgeError(
            6207, f"{path} cannot be written: {error.strerror}", remedy="check that the folder exists and has room"
        ) from error
    finally:
        partial.unlink(missing_ok=True)
    return count
