"""Named columns of numbers or text, for tables such as true factors; rows of numbers are opened by `open_rows`."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.formats.hdf5 import open_cells, opened
from nearid.arrays.formats.registry import Contents, format_of
from nearid.arrays.memory import as_numpy, index_ids, is_a, labels, names_index
from nearid.arrays.names import few
from nearid.arrays.open import open_rows
from nearid.arrays.reading import FileState, damage_told, reached
from nearid.arrays.rows import Rows, row_ids
from nearid.arrays.tables import (
    Columns,
    arrow_columns,
    columns_by_place,
    columns_of,
    one_column,
    refuse_repeats,
)
from nearid.base.errors import InputError
from nearid.base.files import local_path


def open_columns(source: Any, *, key: str | None = None, ids: Any = None, name: str | None = None) -> Columns:
    """Load the columns of an array, a structured array, a DataFrame or a file.

    Parameters
    ----------
    source : array-like, torch.Tensor, pandas.DataFrame, AnnData, dict of arrays, str, os.PathLike or Rows
        Tables (.csv, .tsv, .parquet, DataFrames, structured arrays, dicts and .npz archives of one-dimensional arrays)
        keep their names and their columns of text. Of AnnData and .h5ad files these are obs, unless a key names an
        embedding. Arrays of one dimension are one column. Everything else is opened as
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
    refuse_repeats(rows.name, list(names))
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


def _named(source: Any, ids: str | None, name: str | None) -> Columns | None:
    if is_annotated(source):
        return _obs(source, ids)
    if isinstance(source, str | os.PathLike):
        path = local_path(source)
        if not os.path.isfile(path):
            return None
        with reached(path):
            path.open("rb").close()
            state = FileState(str(path))
            table = _file(path, ids)
            state.check(path.name)
            return table
    if is_a(source, "pandas", "DataFrame"):
        return _frame(source, name or "table", ids)
    if is_a(source, "pandas", "Series"):
        return _frame(source.to_frame(str(source.name or 0)), name or "series", ids)
    if is_a(source, "polars", "DataFrame"):
        return arrow_columns(name or "table", source.to_arrow(), ids)
    if is_a(source, "polars", "Series"):
        return arrow_columns(name or "series", source.alias(source.name or "0").to_frame().to_arrow(), ids)
    if isinstance(source, dict) and source:
        refuse_repeats(name or "table", [str(label) for label in source])
        table = columns_of(name or "table", {str(k): one_column(values) for k, values in source.items()}, ids)
        index = _common_index(table.name, source) if ids is None else None
        return table if index is None else table._replace(ids=index_ids(index), index=labels(index))
    if isinstance(source, np.ndarray) and source.dtype.names:
        return columns_of(name or "array", {field: source[field] for field in source.dtype.names}, ids)
    if getattr(source, "ndim", None) == 1 and not isinstance(source, np.ndarray):
        # A tensor of one dimension, or an array of pandas.
        tensor = is_a(source, "torch", "Tensor")
        source = open_rows(source[:, None]).read(0, len(source))[:, 0] if tensor else one_column(source)
    return columns_by_place(source, name or "array", ids)


def _file(path: Path, ids: str | None) -> Columns | None:
    """Columns of a file: of a table, of arrays that all have one dimension, of one array that has fields or text."""
    known, whole = format_of(path), os.path.abspath(path)
    if known is None or (known.columns is None and known.contents is None):
        return None
    if known.columns is not None:
        return known.columns(whole, path.name, ids)
    contents = known.contents_of(whole, path.name)
    if list(contents.entries) != [""]:
        if not contents.entries:
            return None
        if any(len(entry.shape) != 1 for entry in contents.entries.values()):
            return _matrix_and_columns(contents, path.name, ids)
        return columns_of(path.name, {entry: as_numpy(contents.array(entry)) for entry in contents.entries}, ids)
    shape, dtype = contents.entries[""]
    if isinstance(dtype, str) or (not dtype.names and len(shape) != 1 and dtype.kind not in "OSUT"):
        return None
    array = as_numpy(contents.array(""))
    if array.dtype.names:
        return columns_of(path.name, {field: array[field] for field in array.dtype.names}, ids)
    return columns_by_place(array, path.name, ids)


def _matrix_and_columns(contents: Contents, name: str, ids: str | None) -> Columns | None:
    """Columns of a matrix and those beside it; None where there is no single matrix, or nothing of its length."""
    matrices = [entry for entry, declared in contents.entries.items() if declared.is_rows]
    if len(matrices) != 1:
        return None
    (matrix,) = matrices
    n, width = contents.entries[matrix].shape
    beside = [entry for entry, declared in contents.entries.items() if declared.shape == (n,)]
    if not set(beside) - {ids}:
        return None
    block = as_numpy(contents.array(matrix))
    own = [f"{matrix}_{at}" for at in range(width)]
    refuse_repeats(name, own + beside)
    values = dict(zip(own, block.T, strict=True)) | {entry: as_numpy(contents.array(entry)) for entry in beside}
    notes = [
        f"{name}: the columns of {matrix!r} are called {own[0]!r} to {own[-1]!r}, beside {few(map(repr, beside))}."
    ]
    left = [entry for entry in contents.entries if entry not in (matrix, *beside)]
    if left:
        notes.append(f"Entries of {name} without a value for each of its {n} rows are ignored: {few(map(repr, left))}.")
    return columns_of(name, values, ids)._replace(notes=tuple(notes))


def _frame(frame: Any, name: str, ids: str | None) -> Columns:
    import pyarrow as pa

    indexed = names_index(frame, ids)
    refuse_repeats(name, [str(label) for label in frame.columns])
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError) as error:
        raise InputError(f"{name} has a column of mixed values: {error.args[-1]}. Make each numbers or text.") from None
    columns = arrow_columns(name, table, None if indexed else ids)
    if indexed:
        return columns._replace(ids=np.asarray(frame.index))
    return columns if ids is not None else columns._replace(ids=index_ids(frame.index), index=labels(frame.index))


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


def is_annotated(source: Any) -> bool:
    """Whether a source is AnnData, or a file of it."""
    if isinstance(source, str | os.PathLike):
        return Path(source).suffix.lower() == ".h5ad" and os.path.isfile(local_path(source))
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
    table = _obs(source, None)
    if is_a(source, "anndata", "AnnData"):
        return open_cells(source, "AnnData", key, None), table
    rows = open_rows(source, key=key)
    rows.ids, rows.index = table.ids, table.index
    return rows, table


def _obs(source: Any, ids: str | None) -> Columns:
    """The table obs, whose rows are named by obs_names unless ids name a column."""
    if is_a(source, "anndata", "AnnData"):
        name, frame = "obs of AnnData", source.obs
    else:
        path = local_path(source)
        name, frame = f"obs of {path.name}", _stored_obs(path)
    if not len(frame.columns):
        raise InputError(f"{name} has no columns, but labels, batches or factors are taken from there.")
    if ids is not None:
        return _frame(frame, name, ids.removeprefix("obs/"))
    names = frame.index.astype(str)
    table = _frame(frame.reset_index(drop=True), name, None)
    return table._replace(ids=row_ids(name, np.asarray(names, dtype=object), len(names)), index=names)


def _stored_obs(path: Path) -> Any:
    try:
        from anndata.io import read_elem
    except ImportError:
        raise InputError(
            f"{path.name} can only be read with anndata. Install it: pip install 'nearid[anndata]'"
        ) from None
    with opened(str(path), path.name) as file, damage_told(path.name, ".h5ad file"):
        return read_elem(file["obs"])
