"""Columns of tables, whatever their format: which are features, which holds the ids; those of pyarrow."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nearid.arrays.names import listed, not_found
from nearid.arrays.rows import delivered
from nearid.base.errors import InputError


class Column(NamedTuple):
    """What a table declares about one of its columns."""

    name: str
    numeric: bool
    is_index: bool = False
    example: str | None = None


class Features(NamedTuple):
    """Positions of the feature columns, the names of the others, and notes on these."""

    positions: list[int]
    unused: tuple[str, ...]
    notes: tuple[str, ...]


def id_position(name: str, columns: Sequence[str], ids: str | None) -> int | None:
    """Position of the column that holds the ids."""
    if ids is None:
        return None
    if ids not in columns:
        raise not_found(name, "ids", ids, columns)
    if columns.count(ids) > 1:
        raise InputError(f"{name} has {columns.count(ids)} columns named {ids!r}, so ids={ids!r} does not say which.")
    return columns.index(ids)


def features(
    name: str, columns: Sequence[Column], id_at: int | None, first_column: Callable[[], np.ndarray]
) -> Features:
    """Choose the feature columns: the numeric ones except the ids and an index.

    Parameters
    ----------
    name : str
        The table, for the messages.
    columns : sequence of Column
        All columns in order.
    id_at : int or None
        Position of the id column.
    first_column : callable
        Gives the values of the first column; called only when its name lets it be an index.
    """
    index = [at for at, column in enumerate(columns) if column.is_index and at != id_at]
    if not columns:
        raise InputError(f"{name} has no columns, but one column per feature is expected.")
    unnamed = columns[0].name in ("", "Unnamed: 0") and columns[0].numeric and 0 not in (id_at, *index)
    if unnamed and _is_index(first_column()):
        index.append(0)
    positions = [at for at, column in enumerate(columns) if column.numeric and at != id_at and at not in index]
    other = [column for at, column in enumerate(columns) if not column.numeric and at != id_at and at not in index]
    notes = []
    if index:
        names = listed(repr(columns[at].name) for at in index)
        label = columns[index[0]].name
        hint = f" To pair rows by it: ids={label!r} (--ids)." if label and id_at is None else ""
        notes.append(f"The column {names} of {name} is an index written by pandas; it is not used as a feature.{hint}")
    if other:
        hint = "" if id_at is not None else " If one of them names the rows, pair by it: ids (--ids)."
        notes.append(f"Columns of {name} that are not numeric are ignored: {listed(map(_described, other))}.{hint}")
    if not positions:
        held = f"Its columns: {listed(repr(column.name) for column in columns)}."
        hint = " Are its cells separated by something else than this suffix says?" if len(columns) == 1 else ""
        raise InputError(f"{name} has no numeric columns to use as features. {held}{hint}")
    used = set(positions)
    unused = tuple(column.name for at, column in enumerate(columns) if at not in used)
    return Features(positions, unused, tuple(notes))


def refuse_key(name: str, key: str | None) -> None:
    """Refuse a key for a table whose numeric columns are the features."""
    if key is not None:
        raise InputError(
            f"{name} is a table whose numeric columns are the features, but key={key!r} was given. Leave the key out."
        )


def _is_index(values: np.ndarray) -> bool:
    # Distinct integers without a name: counting, or what filtering or shuffling left of counting.
    return values.dtype.kind in "iu" and len(np.unique(values)) == len(values)


def _described(column: Column) -> str:
    return repr(column.name) if column.example is None else f"{column.name!r} (which holds {column.example!r})"


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
