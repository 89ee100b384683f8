"""Named columns of numbers or text, for tables such as true factors; rows of numbers are opened by `open_rows`."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nearid.arrays.formats.csv import plain_ids, read_text
from nearid.arrays.formats.h5ad import open_cells
from nearid.arrays.formats.hdf5 import opened
from nearid.arrays.formats.npy import read_header, read_npy
from nearid.arrays.formats.npz import read_columns
from nearid.arrays.memory import index_ids, is_a, labels, names_index
from nearid.arrays.open import file_suffix, open_rows
from nearid.arrays.reading import damage_told, reached, unchanged
from nearid.arrays.rows import Rows, row_ids
from nearid.arrays.tables import Column, features, id_position, id_values, index_names
from nearid.base.errors import InputError
from nearid.base.files import local_path
from nearid.base.limits import check_memory


class Columns(NamedTuple):
    """Columns of one table: their values by name, the ids of the rows, notes for the user, and the pandas index."""

    name: str
    values: dict[str, np.ndarray]
    ids: np.ndarray | None
    notes: tuple[str, ...]
    index: Any = None


def open_columns(source: Any, *, key: str | None = None, ids: Any = None, name: str | None = None) -> Columns:
    """Load the columns of an array, a structured array, a DataFrame or a file.

    Parameters
    ----------
    source : array-like, torch.Tensor, pandas.DataFrame, dict of arrays, str, os.PathLike or Rows
        Tables (.csv, .tsv, .parquet, DataFrames, structured arrays, dicts and .npz archives of one-dimensional arrays)
        keep their names and their columns of text. Arrays of one dimension are one column. Everything else is opened as
        rows of numbers. Columns without names are named by their place.
    key, ids, name
        As of `open_rows`.
    """
    table = named_columns(source, key=key, ids=ids, name=name)
    if table is not None:
        return table
    rows = open_rows(source, key=key, ids=ids, name=name)
    block = rows.read(0, rows.shape[0])
    names = rows.columns or tuple(map(str, range(rows.shape[1])))
    _refuse_repeats(rows.name, list(names))
    values = {label: block[:, at] for at, label in enumerate(names)}
    return Columns(rows.name, values, rows.ids, rows.notes, rows.index)


def named_columns(source: Any, *, key: str | None = None, ids: Any = None, name: str | None = None) -> Columns | None:
    """The columns of a source that names them; None for rows of numbers, which are left to `open_rows`."""
    by_name = ids if isinstance(ids, str) else None
    table = None if key is not None else _named(source, by_name, name)
    if table is None:
        return None
    for column, values in table.values.items():
        if values.ndim != 1:
            raise InputError(
                f"The column {column!r} of {table.name} has shape {values.shape}, but one value per row is expected."
            )
    sizes = {column: len(values) for column, values in table.values.items()}
    if len(set(sizes.values())) != 1:
        raise InputError(f"The columns of {table.name} differ in length: {sizes}. Give one value per row in each.")
    n = next(iter(sizes.values()))
    if n < 2:
        raise InputError(f"{table.name} has {n} rows, but at least 2 rows are needed: give one row per sample.")
    given = table.ids if ids is None or by_name is not None else ids
    checked = None if given is None else row_ids(table.name, given, n)
    return table._replace(name=name or table.name, ids=checked, index=table.index if ids is None else None)


def one_column(values: Any) -> np.ndarray:
    """Values as an array; numbers and NaN beside text stay what they are, where numpy would make text of them.

    A pandas Categorical becomes the text of its categories, None where it is missing: its numbers are names of classes.
    """
    if type(getattr(values, "dtype", None)).__name__ == "CategoricalDtype":
        return _categories(np.asarray(values, dtype=object).tolist())
    array = np.asarray(values)
    mixed = array.dtype.kind in "US" and isinstance(values, list | tuple)
    if mixed and not all(isinstance(value, str | bytes) for value in values):
        return np.asarray(values, dtype=object)
    return array


def _named(source: Any, ids: str | None, name: str | None) -> Columns | None:
    if isinstance(source, str | os.PathLike):
        path = local_path(source)
        if not os.path.isfile(path):
            return None
        with reached(path), unchanged(str(path), path.name):
            path.open("rb").close()
            return _file(path, ids)
    if is_a(source, "pandas", "DataFrame"):
        return _frame(source, name or "table", ids)
    if is_a(source, "pandas", "Series"):
        return _frame(source.to_frame(str(source.name or 0)), name or "series", ids)
    if is_a(source, "polars", "DataFrame"):
        return _arrow(source.to_arrow(), name or "table", ids)
    if is_a(source, "polars", "Series"):
        return _arrow(source.alias(source.name or "0").to_frame().to_arrow(), name or "series", ids)
    if isinstance(source, dict) and source:
        _refuse_repeats(name or "table", [str(label) for label in source])
        table = _without_ids(name or "table", {str(k): one_column(values) for k, values in source.items()}, ids)
        index = _common_index(table.name, source) if ids is None else None
        return table if index is None else table._replace(ids=index_ids(index), index=labels(index))
    if isinstance(source, np.ndarray) and source.dtype.names:
        return _without_ids(name or "array", {field: source[field] for field in source.dtype.names}, ids)
    if getattr(source, "ndim", None) == 1 and not isinstance(source, np.ndarray):
        # A tensor of one dimension, or an array of pandas.
        tensor = is_a(source, "torch", "Tensor")
        source = open_rows(source[:, None]).read(0, len(source))[:, 0] if tensor else one_column(source)
    return _by_place(source, name or "array", ids)


def _by_place(source: Any, name: str, ids: str | None) -> Columns | None:
    """Columns of an array that is no table of numbers: it has one dimension, or holds text."""
    if not isinstance(source, np.ndarray | list | tuple):
        return None
    try:
        array = np.asarray(source)
    except ValueError:
        # Lists of different lengths, of which `open_rows` tells.
        return None
    if array.ndim == 1 and array.size:
        array = array[:, None]
    elif array.ndim != 2 or array.dtype.kind not in "OSUT":
        return None
    columns = {str(at): column for at, column in enumerate(array.T)}
    if array.dtype.kind == "O":
        # Numbers in a table that also holds text.
        columns = {
            label: np.asarray(values.tolist()) if _numbers(values) else values for label, values in columns.items()
        }
    return _without_ids(name, columns, ids)


def _numbers(values: np.ndarray) -> bool:
    return all(isinstance(value, int | float | np.number | np.bool_) for value in values)


def _file(path: Path, ids: str | None) -> Columns | None:
    suffix, whole = file_suffix(path), os.path.abspath(path)
    if suffix in (".csv", ".tsv", ".csv.gz", ".tsv.gz"):
        table, _, notes = read_text(whole, path.name, ids)
        return _table(path.name, table, ids, plain_ids, set(), notes)
    if suffix == ".parquet":
        import pyarrow.parquet

        with damage_told(path.name, "parquet file"):
            declared = pyarrow.parquet.ParquetFile(whole, page_checksum_verification=True)
            if any(pyarrow.types.is_nested(field.type) for field in declared.schema_arrow):
                return None
            size = declared.metadata.num_rows * declared.metadata.num_columns * 8
            check_memory(path.name, 2 * size, "Write the columns that are needed to a smaller file.")
            table = declared.read()
        return _table(path.name, table, ids, id_values, index_names(table.schema), ())
    if suffix == ".npz":
        held = read_columns(whole, path.name)
        return None if held is None else _without_ids(path.name, held, ids)
    if suffix == ".npy":
        with damage_told(path.name, ".npy file"), open(whole, "rb") as file:
            header = read_header(file)
            if not header.dtype.names and len(header.shape) != 1 and header.dtype.kind not in "OSUT":
                return None
            array = read_npy(whole)
        if array.dtype.names:
            return _without_ids(path.name, {field: array[field] for field in array.dtype.names}, ids)
        return _by_place(array, path.name, ids)
    return None


def _table(
    name: str, table: Any, ids: str | None, read_ids: Any, index: Iterable[str], notes: tuple[str, ...]
) -> Columns:
    names = table.column_names
    _refuse_repeats(name, names)
    id_at = id_position(name, names, ids)
    columns = [
        Column(label, _is_plain(column.type), is_index=label in index)
        for label, column in zip(names, table.columns, strict=True)
    ]
    chosen = features(name, columns, id_at, lambda: np.asarray(table.column(0)))
    values = {names[at]: _values(table.column(at)) for at in chosen.positions}
    return Columns(name, values, None if id_at is None else read_ids(table.column(id_at)), notes + chosen.notes)


def _frame(frame: Any, name: str, ids: str | None) -> Columns:
    import pyarrow as pa

    indexed = names_index(frame, ids)
    _refuse_repeats(name, [str(label) for label in frame.columns])
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError) as error:
        raise InputError(f"{name} has a column of mixed values: {error.args[-1]}. Make each numbers or text.") from None
    columns = _arrow(table, name, None if indexed else ids)
    if indexed:
        return columns._replace(ids=np.asarray(frame.index))
    return columns if ids is not None else columns._replace(ids=index_ids(frame.index), index=labels(frame.index))


def _arrow(table: Any, name: str, ids: str | None) -> Columns:
    return _table(name, table, ids, id_values, (), ())


def _common_index(name: str, columns: dict[Any, Any]) -> Any:
    """The index of those columns that are Series; None where there are none."""
    series = {label: values for label, values in columns.items() if is_a(values, "pandas", "Series")}
    first = next(iter(series), None)
    for label, values in series.items():
        if not values.index.equals(series[first].index):
            raise InputError(
                f"The columns {first!r} and {label!r} of {name} are Series with different indexes, or in another "
                "order. Join them first, with pd.DataFrame(columns).dropna()."
            )
    return None if first is None else series[first].index


def _without_ids(name: str, values: dict[str, np.ndarray], ids: str | None) -> Columns:
    id_at = id_position(name, list(values), ids)
    kept = {label: column for at, (label, column) in enumerate(values.items()) if at != id_at}
    return Columns(name, kept, None if ids is None else values[ids], ())


def _refuse_repeats(name: str, names: list[str]) -> None:
    twice = next((label for label in names if names.count(label) > 1), None)
    if twice is not None:
        raise InputError(f"{name} has several columns named {twice!r}. Give every column its own name.")


def _values(column: Any) -> np.ndarray:
    """A column of numbers (missing ones NaN), booleans or objects (text, with None where it is missing)."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        return _categories(column.to_pylist())
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
    return np.asarray(column) if pa.types.is_boolean(kind) and not column.null_count else _objects(column.to_pylist())


def _categories(values: list[Any]) -> np.ndarray:
    """Values of a column of categories as text, None where they are missing."""
    texts = {value: as_text(value) for value in set(values)}
    refuse_mixed("A column of categories", texts)
    return _objects([texts[value] for value in values])


def as_text(value: Any) -> str | None:
    """A class as text; whole numbers without the point that a table's missing values bring."""
    # What is missing in a table is not equal to itself, or cannot say so.
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value == "" or value != value:
        return None
    if isinstance(value, float | np.floating) and value.is_integer():
        return str(int(value))
    return value.decode() if isinstance(value, bytes) else str(value)


def refuse_mixed(name: str, texts: dict[Any, str | None]) -> None:
    """Refuse values that differ by their type alone, as 1 and "1" do; `texts` holds the text of each value."""
    seen: dict[str, Any] = {}
    for value, text in texts.items():
        if text is not None and text in seen:
            raise InputError(
                f"{name} holds both {seen[text]!r} and {value!r}, which differ by their type alone. Make all of them "
                "text, as in [str(value) for value in values], or all numbers."
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
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    return bool(text or number or types.is_null(kind))


def is_annotated(source: Any) -> bool:
    """Whether a source is AnnData, or a file of it."""
    if isinstance(source, str | os.PathLike):
        return file_suffix(Path(source)) == ".h5ad" and os.path.isfile(local_path(source))
    return is_a(source, "anndata", "AnnData")


def open_annotated(source: Any, key: str | None = None) -> tuple[Rows, Columns]:
    """The embedding, and the table `obs`; both named by `obs_names`.

    Parameters
    ----------
    source : AnnData, str or os.PathLike
        Rows of a file are read block by block.
    key : str, optional
        Entry of `obsm`; by default the only one, or the matrix X where there is none.
    """
    return _open_file(local_path(source), key) if not hasattr(source, "obsm") else _open_object(source, key)


def _open_object(cells: Any, key: str | None) -> tuple[Rows, Columns]:
    return open_cells(cells, "AnnData", key, None), _obs("obs of AnnData", cells.obs)


def _open_file(path: Path, key: str | None) -> tuple[Rows, Columns]:
    try:
        from anndata.io import read_elem
    except ImportError:
        raise InputError(
            f"{path.name} can only be read with anndata. Install it: pip install 'nearid[anndata]'"
        ) from None
    with opened(str(path), path.name) as file, damage_told(path.name, ".h5ad file"):
        frame = read_elem(file["obs"])
    rows = open_rows(path, key=key)
    table = _obs(f"obs of {path.name}", frame)
    rows.ids, rows.index = table.ids, table.index
    return rows, table


def _obs(name: str, frame: Any) -> Columns:
    names = frame.index.astype(str)
    table = named_columns(frame.reset_index(drop=True), name=name)
    if table is None:
        raise InputError(f"{name} has no columns.")
    return table._replace(ids=np.asarray(names, dtype=np.str_), index=names)
