"""Columns of pyarrow tables: what they declare, their numbers, their ids; and polars frames, which are such tables."""

from typing import Any

import numpy as np

from nearid.arrays.check import delivered
from nearid.arrays.held import MemoryRows
from nearid.arrays.table import Column, features, id_position, refuse_key


def open_polars(frame: Any, name: str, key: str | None, ids: str | None) -> MemoryRows:
    """Open the numeric columns of a polars DataFrame."""
    refuse_key(name, key)
    table = frame.to_arrow()
    names = table.column_names
    id_at = id_position(name, names, ids)
    chosen = features(name, declared(table.schema), id_at, lambda: np.asarray(table.column(0)))
    dtype = np.result_type(*(stored(table.schema.field(at).type) for at in chosen.positions))
    array = np.empty((table.num_rows, len(chosen.positions)), dtype)
    for at, position in enumerate(chosen.positions):
        array[:, at] = floats(table.column(position), dtype)
    rows = MemoryRows(name, array, None if id_at is None else id_values(table.column(id_at)), chosen.notes)
    rows.columns, rows.unused, rows.is_table = tuple(names[at] for at in chosen.positions), chosen.unused, True
    return rows


def declared(schema: Any) -> list[Column]:
    """What a schema declares about its columns."""
    index = index_names(schema)
    return [Column(field.name, is_number(field.type), is_index=field.name in index) for field in schema]


def index_names(schema: Any) -> set[str]:
    """Columns that pandas wrote to keep an index."""
    written = (schema.pandas_metadata or {}).get("index_columns", [])
    return {"__index_level_0__", *(name for name in written if isinstance(name, str))}


def is_number(kind: Any) -> bool:
    """Whether a type holds numbers, or booleans."""
    import pyarrow as pa

    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def stored(kind: Any) -> np.dtype[Any]:
    """How numbers of a type reach the computations."""
    import pyarrow as pa

    small_float = pa.types.is_floating(kind) and kind.bit_width <= 32
    return delivered(np.dtype(np.float32 if small_float else np.float64))


def floats(column: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """The numbers of a column; missing ones are NaN."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(dtype)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())  # there is no direct way from booleans to floats
    array: np.ndarray = column.cast(kind, safe=False).to_numpy()
    return array


def id_values(column: Any) -> np.ndarray:
    """Ids of a column: integers as they are, everything else as objects."""
    import pyarrow as pa

    if pa.types.is_integer(column.type) and not column.null_count:
        return np.asarray(column)
    values = np.empty(len(column), object)
    values[:] = column.to_pylist()
    return values
