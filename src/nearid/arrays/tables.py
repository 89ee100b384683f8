"""Columns of tables of any format: which of them are features and which holds the ids. Columns of pyarrow tables."""

import shlex
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nearid.arrays.dates import date_texts, is_missing
from nearid.arrays.names import few, not_found
from nearid.arrays.rows import delivered, refuse_masked
from nearid.base.errors import InputError


class Column(NamedTuple):
    """What a table declares about one column: its name, and whether it is numeric or an index."""

    name: str
    numeric: bool
    is_index: bool = False
    example: str | None = None


class Features(NamedTuple):
    """Positions of the feature columns, names of and notes on the others, and positions of index columns of pandas."""

    positions: list[int]
    unused: tuple[str, ...]
    notes: tuple[str, ...]
    written: list[int]


class NotNumeric(str):
    """The note on columns that are ignored because they are not numeric. One of them may later be used as blocks."""

    table: str
    columns: tuple[Column, ...]
    hint: str

    @classmethod
    def of(cls, table: str, columns: Sequence[Column], hint: str) -> "NotNumeric":
        """Return the note on these columns of a table."""
        note = cls(f"Columns of {table} that are not numeric are ignored: {few(map(_described, columns))}.{hint}")
        note.table, note.columns, note.hint = table, tuple(columns), hint
        return note


def notes_without(notes: Sequence[str], column: str) -> tuple[str, ...]:
    """Return the notes without the statement that this column is ignored."""
    kept: list[str] = []
    for note in notes:
        if isinstance(note, NotNumeric) and any(each.name == column for each in note.columns):
            others = [each for each in note.columns if each.name != column]
            kept += [NotNumeric.of(note.table, others, note.hint)] if others else []
        else:
            kept.append(note)
    return tuple(kept)


class Columns(NamedTuple):
    """Columns of one table: values by column name, ids of the rows, notes for the user, and the pandas index.

    `names_rows` is the name of a column in which pandas stored an index other than 0, 1, 2, ... Its values are not in
    `values`.
    """

    name: str
    values: dict[str, np.ndarray]
    ids: np.ndarray | None
    notes: tuple[str, ...]
    index: Any = None
    names_rows: str | None = None


def id_position(name: str, columns: Sequence[str], ids: str | None) -> int | None:
    """Return the position of the column that holds the ids; None without ids."""
    if ids is None:
        return None
    if ids not in columns:
        raise not_found(name, "ids", ids, columns)
    if columns.count(ids) > 1:
        raise InputError(
            f"{name} has {columns.count(ids)} columns named {ids!r}, so ids={ids!r} is ambiguous. Rename one of them."
        )
    return columns.index(ids)


def features(
    name: str, columns: Sequence[Column], id_at: int | None, first_column: Callable[[], np.ndarray]
) -> Features:
    """Return the feature columns: the numeric columns except ids and index.

    Parameters
    ----------
    name : str
        Name of the table in messages.
    columns : sequence of Column
        All columns in order.
    id_at : int or None
        Position of the column of ids.
    first_column : callable
        Returns the values of the first column. It is called only if the name of this column may be that of an index.
    """
    index = [at for at, column in enumerate(columns) if column.is_index and at != id_at]
    if not columns:
        raise InputError(f"{name} has no columns, but one column per feature is expected.")
    unnamed = columns[0].name in ("", "Unnamed: 0") and 0 not in (id_at, *index)
    if unnamed and _is_index(first_column()):
        index.append(0)
    positions = [at for at, column in enumerate(columns) if column.numeric and at != id_at and at not in index]
    other = [column for at, column in enumerate(columns) if not column.numeric and at != id_at and at not in index]
    notes: list[str] = []
    if index:
        names = few(repr(columns[at].name) for at in index)
        label = columns[index[0]].name
        hint = f" To pair rows by it: ids={label!r} (--ids {shlex.quote(label)})." if id_at is None else ""
        notes.append(f"The column {names} of {name} is an index written by pandas and is not used as a feature.{hint}")
    if other:
        hint = "" if id_at is not None else " If one of them holds the ids of the rows, pair by it: ids (--ids)."
        notes.append(NotNumeric.of(name, other, hint))
    if not positions:
        held = f"Its columns: {few(repr(column.name) for column in columns)}."
        hint = ""
        if len(columns) == 1:
            mark = next((mark for mark in (";", "\t", "|", ",") if mark in columns[0].name), None)
            hint = f" Its cells seem to be separated by {mark!r}." if mark else ""
            hint += " Separate cells by commas in a .csv file and by tabs in a .tsv file."
        raise InputError(f"{name} has no numeric columns to use as features. {held}{hint}")
    used = set(positions)
    unused = tuple(column.name for at, column in enumerate(columns) if at not in used)
    return Features(positions, unused, tuple(notes), index)


def refuse_key(name: str, key: str | None) -> None:
    """Raise an error for a key if the features are the numeric columns of a table."""
    if key is not None:
        raise InputError(
            f"{name} is a table whose numeric columns are the features, but key={key!r} was given. Leave the key out."
        )


def _is_index(values: np.ndarray) -> bool:
    # In a column without a name, distinct integers are row numbers (maybe after filtering or shuffling), and distinct
    # texts are row labels.
    texts = values.dtype.kind == "O" and all(isinstance(value, str) and value for value in values)
    return (values.dtype.kind in "iu" or texts) and len(set(values.tolist())) == len(values)


def _described(column: Column) -> str:
    return repr(column.name) if column.example is None else f"{column.name!r} (which holds {column.example!r})"


def declared(schema: Any) -> list[Column]:
    """Return what a schema declares about its columns."""
    index = index_names(schema)
    return [Column(field.name, is_number(field.type), is_index=field.name in index) for field in schema]


def index_names(schema: Any) -> set[str]:
    """Return the names of columns in which pandas stored an index."""
    written = (schema.pandas_metadata or {}).get("index_columns", [])
    return {"__index_level_0__", *(name for name in written if isinstance(name, str))}


def is_number(kind: Any) -> bool:
    """Return whether a pyarrow type holds numbers or booleans."""
    import pyarrow as pa

    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def stored(kind: Any) -> np.dtype[Any]:
    """Return the numpy dtype in which numbers of a pyarrow type are computed."""
    import pyarrow as pa

    small_float = pa.types.is_floating(kind) and kind.bit_width <= 32
    return delivered(np.dtype(np.float32 if small_float else np.float64))


def floats(column: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Return the numbers of a column, with NaN for missing values."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(dtype)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())  # pyarrow cannot convert booleans to floats directly
    column = column.cast(kind, safe=False)
    if column.null_count:
        return np.asarray(column.to_numpy())
    # A conversion by pyarrow would import pandas, which takes as long as many a whole comparison.
    return np.concatenate([np.empty(0, dtype), *map(np.from_dlpack, getattr(column, "chunks", [column]))])


def loses_digits(column: Any) -> bool:
    """Return whether a column holds integers that float64 cannot represent."""
    import pyarrow as pa
    import pyarrow.compute

    if not pa.types.is_integer(column.type) or column.type.bit_width < 64 or column.null_count == len(column):
        return False
    ends = pyarrow.compute.min_max(column).as_py()
    return bool(max(-ends["min"], ends["max"]) > 2**53)


def id_values(column: Any) -> np.ndarray:
    """Return the ids of a column: integers as an integer array, everything else as objects."""
    import pyarrow as pa

    if pa.types.is_integer(column.type) and not column.null_count:
        return np.asarray(column)
    return _objects(column.to_pylist())


def columns_by_place(source: Any, name: str, ids: str | None) -> Columns | None:
    """Return the columns of an array that is one-dimensional or holds text; None for a matrix of numbers."""
    if not isinstance(source, np.ndarray | list | tuple):
        return None
    refuse_masked(name, source)
    try:
        array = np.asarray(source)
    except ValueError:
        # Lists of different lengths, for which `open_rows` raises the error.
        return None
    if array.ndim == 1 and array.size:
        array = array[:, None]
    elif array.ndim != 2 or array.dtype.kind not in "OSUT":
        return None
    columns = {str(at): column for at, column in enumerate(array.T)}
    if array.dtype.kind == "O":
        # Columns of numbers in a table that also holds text.
        columns = {
            label: np.asarray(values.tolist()) if _numbers(values) else values for label, values in columns.items()
        }
    return columns_of(name, columns, ids)


def _numbers(values: np.ndarray) -> bool:
    return all(isinstance(value, int | float | np.number | np.bool_) for value in values)


def arrow_columns(
    name: str,
    table: Any,
    ids: str | None,
    read_ids: Callable[[Any], np.ndarray] | None = None,
    notes: tuple[str, ...] = (),
) -> Columns:
    """Return the columns of a pyarrow table; `read_ids`, if given, reads the column of ids."""
    index = index_names(table.schema)
    names = table.column_names
    refuse_repeats(name, names)
    id_at = id_position(name, names, ids)
    columns = [
        Column(label, _is_plain(column.type), is_index=label in index)
        for label, column in zip(names, table.columns, strict=True)
    ]
    chosen = features(name, columns, id_at, lambda: np.asarray(table.column(0)))
    values = {names[at]: _values(table.column(at)) for at in chosen.positions}
    row_ids = None if id_at is None else (read_ids or id_values)(table.column(id_at))
    counts = (np.array_equal(np.asarray(table.column(at)), np.arange(table.num_rows)) for at in chosen.written)
    named = next((names[at] for at, count in zip(chosen.written, counts, strict=True) if not count), None)
    return Columns(name, values, row_ids, notes + chosen.notes, names_rows=named)


def one_column(values: Any) -> np.ndarray:
    """Return values as an array. Numbers and NaN among text are kept, although numpy would convert them to text.

    A pandas Categorical becomes the text of its categories, because even numeric categories are names of classes.
    Missing values become None.
    """
    refuse_masked("A column", values)
    if type(getattr(values, "dtype", None)).__name__ == "CategoricalDtype":
        return _categories(np.asarray(values, dtype=object).tolist())
    array = np.asarray(values)
    mixed = array.dtype.kind in "US" and isinstance(values, list | tuple)
    if mixed and not all(isinstance(value, str | bytes) for value in values):
        return np.asarray(values, dtype=object)
    return array


def columns_of(name: str, values: dict[str, np.ndarray], ids: str | None) -> Columns:
    """Return columns that are in memory, with the column of ids separated from the values."""
    id_at = id_position(name, list(values), ids)
    kept = {label: column for at, (label, column) in enumerate(values.items()) if at != id_at}
    return Columns(name, kept, None if ids is None else values[ids], ())


def refuse_repeats(name: str, names: list[str]) -> None:
    """Raise an error if two columns have the same name."""
    twice = next((label for label in names if names.count(label) > 1), None)
    if twice is not None:
        raise InputError(f"{name} has several columns named {twice!r}. Give every column its own name.")


def _values(column: Any) -> np.ndarray:
    """Return a column as numbers (NaN if missing), booleans, dates or objects (text, None if missing).

    Integers beyond 2^53 stay integers.
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        return _categories(column.to_pylist())
    if pa.types.is_boolean(kind) and not column.null_count:
        return np.asarray(column)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return np.asarray(column.to_numpy())
    if loses_digits(column):
        # As floats, different classes could become equal.
        return id_values(column)
    if not pa.types.is_boolean(kind) and (is_number(kind) or pa.types.is_null(kind)):
        return floats(column, np.dtype(np.float64))
    return _objects(column.to_pylist())


def _categories(values: list[Any]) -> np.ndarray:
    """Return the values of a categorical column as text, with None for missing values."""
    dates = date_texts(_objects(values))
    if dates is not None:
        return dates
    texts = {value: as_text(value) for value in set(values)}
    refuse_mixed("A column of categories", texts)
    return _objects([texts[value] for value in values])


def as_text(value: Any) -> str | None:
    """Return a class as text; None if it is missing. Floats that are whole numbers are written without a point."""
    if is_missing(value) or value == "" or value != value:
        return None
    dates = date_texts(_objects([value]))
    if dates is not None:
        return str(dates[0])
    if isinstance(value, float | np.floating) and value.is_integer():
        return str(int(value))
    return value.decode() if isinstance(value, bytes) else str(value)


def refuse_mixed(name: str, texts: dict[Any, str | None]) -> None:
    """Raise an error if two values differ only in type, such as 1 and "1". `texts` maps each value to its text."""
    seen: dict[str, Any] = {}
    for value, text in texts.items():
        if text is not None and text in seen:
            raise InputError(
                f"{name} holds both {seen[text]!r} and {value!r}, which differ only in type. Convert all values to "
                "text, for example with [str(value) for value in values], or all to numbers."
            )
        if text is not None:
            seen[text] = value


def _objects(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _is_plain(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind)
    date = types.is_timestamp(kind) or types.is_date(kind) or types.is_time(kind)
    return bool(text or date or is_number(kind) or types.is_null(kind))
