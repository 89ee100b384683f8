"""Named columns of numbers or text, for tables such as true factors. For rows of numbers see `open_rows`."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.formats.hdf5 import open_cells, opened
from nearid.arrays.formats.parquet import PARQUET, plain_columns, vector_columns
from nearid.arrays.formats.registry import Contents, Format
from nearid.arrays.memory import as_numpy, index_ids, is_a, labels, names_index
from nearid.arrays.names import few
from nearid.arrays.open import open_rows
from nearid.arrays.paths import Place, format_at, known_format, name_of, place_of, whole
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
    """Return the named columns of an array, a structured array, a DataFrame or a file.

    Parameters
    ----------
    source : array-like, torch.Tensor, pandas.DataFrame, AnnData, dict of arrays, str, os.PathLike or Rows
        Tables (.csv, .tsv, .parquet, DataFrames, structured arrays, dicts and .npz archives of one-dimensional arrays)
        keep the names of their columns, and columns with text are kept. For AnnData and .h5ad files the table is obs,
        unless a key names an embedding. A one-dimensional array is one column. Everything else is opened as rows of
        numbers. Columns without names are called by their position, counted from 0.
    key, ids, name
        See `open_rows`.

    Returns
    -------
    Columns
        The values of each column by its name, the ids of the rows if there are any, and notes for the user.

    Examples
    --------
    >>> from nearid.arrays import open_columns
    >>> table = open_columns({"dose": [0.1, 0.5, 1.0], "cell": ["a", "b", "a"]})
    >>> list(table.values), table.values["cell"].tolist()
    (['dose', 'cell'], ['a', 'b', 'a'])
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
    """Return the columns of a source with named columns; None for rows of numbers, which `open_rows` opens."""
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
        raise InputError(
            f"The columns of {table.name} differ in length: {sizes}. Give one value per row in each column."
        )
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
        place = place_of(source)
        if isinstance(place, str):
            known_format(place)
        elif not os.path.isfile(place):
            return None
        with reached(place):
            return _unchanged(place, ids)
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
        # A one-dimensional tensor, or a pandas array.
        tensor = is_a(source, "torch", "Tensor")
        source = open_rows(source[:, None]).read(0, len(source))[:, 0] if tensor else one_column(source)
    return columns_by_place(source, name or "array", ids)


def _unchanged(place: Place, ids: str | None) -> Columns | None:
    """Return the columns of a file that does not change while it is read."""
    known, absolute, name = format_at(whole(place)), whole(place), name_of(place)
    if known is not None and known.is_folder:
        return None
    if isinstance(place, Path):
        place.open("rb").close()
    state = FileState(absolute)
    table = _file(known, absolute, name, ids)
    state.check(name)
    return table


def _file(known: Format | None, path: str, name: str, ids: str | None) -> Columns | None:
    """Return the columns of a table, of several one-dimensional arrays, or of one array with fields or text."""
    if known is None or (known.columns is None and known.contents is None):
        return None
    if known.columns is not None:
        return known.columns(path, name, ids)
    contents = known.contents_of(path, name)
    if list(contents.entries) != [""]:
        if not contents.entries:
            return None
        if any(len(entry.shape) != 1 for entry in contents.entries.values()):
            return _matrix_and_columns(contents, name, ids)
        return columns_of(name, {entry: as_numpy(contents.array(entry)) for entry in contents.entries}, ids)
    shape, dtype = contents.entries[""]
    if isinstance(dtype, str) or (not dtype.names and len(shape) != 1 and dtype.kind not in "OSUT"):
        return None
    array = as_numpy(contents.array(""))
    if array.dtype.names:
        return columns_of(name, {field: array[field] for field in array.dtype.names}, ids)
    return columns_by_place(array, name, ids)


def _matrix_and_columns(contents: Contents, name: str, ids: str | None) -> Columns | None:
    """Return the columns of the only matrix and the vectors of equal length in the same file.

    None if there is more than one matrix, no matrix, or no vector of that length.
    """
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
        f"{name}: the columns of the matrix {matrix!r} are named {own[0]!r} to {own[-1]!r}. Other columns: "
        f"{few(map(repr, beside))}."
    ]
    left = [entry for entry in contents.entries if entry not in (matrix, *beside)]
    if left:
        notes.append(
            f"Entries of {name} that do not have one value for each of the {n} rows are ignored: "
            f"{few(map(repr, left))}."
        )
    return columns_of(name, values, ids)._replace(notes=tuple(notes))


def _frame(frame: Any, name: str, ids: str | None) -> Columns:
    import pyarrow as pa

    indexed = names_index(frame, ids)
    refuse_repeats(name, [str(label) for label in frame.columns])
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError) as error:
        raise InputError(
            f"{name} has a column that mixes types: {error.args[-1]}. Convert the column to numbers only or text only."
        ) from None
    columns = arrow_columns(name, table, None if indexed else ids)
    if indexed:
        return columns._replace(ids=np.asarray(frame.index))
    return columns if ids is not None else columns._replace(ids=index_ids(frame.index), index=labels(frame.index))


def _common_index(name: str, columns: dict[Any, Any]) -> Any:
    """Return the index that all columns of type Series share; None if no column is a Series."""
    series = {label: values for label, values in columns.items() if is_a(values, "pandas", "Series")}
    first = next(iter(series), None)
    for label, values in series.items():
        if not values.index.equals(series[first].index):
            raise InputError(
                f"The columns {first!r} and {label!r} of {name} are Series whose indexes differ or are in a different "
                "order. Join them first with pd.DataFrame(columns).dropna()."
            )
    return None if first is None else series[first].index


def vectors_in(source: Any) -> list[str]:
    """Return the names of the columns of a .parquet file that hold a vector in each row; empty for other sources."""
    place = place_of(source) if isinstance(source, str | os.PathLike) else None
    if place is None or format_at(whole(place)) is not PARQUET or (isinstance(place, Path) and not place.is_file()):
        return []
    with reached(place):
        return vector_columns(whole(place), name_of(place))


def columns_beside(source: str | os.PathLike[str]) -> Columns:
    """Return the columns of a .parquet file with one value in each row, beside those that hold vectors."""
    place = place_of(source)
    with reached(place):
        return plain_columns(whole(place), name_of(place), None)


def is_annotated(source: Any) -> bool:
    """Return whether a source is an AnnData object or an .h5ad file."""
    if isinstance(source, str | os.PathLike):
        place = place_of(source)
        return isinstance(place, Path) and place.suffix.lower() == ".h5ad" and place.is_file()
    return is_a(source, "anndata", "AnnData")


def open_annotated(source: Any, key: str | None = None) -> tuple[Rows, Columns]:
    """Return the embedding and the table `obs` of AnnData; `obs_names` are the ids of both.

    Parameters
    ----------
    source : AnnData, str or os.PathLike
        The rows of a file are read block by block.
    key : str, optional
        Entry of `obsm`. Default: the only entry, or the matrix X if `obsm` is empty.
    """
    table = _obs(source, None)
    rows: Rows
    if is_a(source, "anndata", "AnnData"):
        rows, variables = open_cells(source, "AnnData", key, None), source.var_names
    else:
        rows = open_rows(source, key=key)
        rows.ids, rows.index = table.ids, table.index
        variables = _stored(local_path(source), "var").index
    # X and layers have a column for each variable; entries of obsm have columns of their own.
    if ":obsm/" not in rows.name and rows.shape[1] == len(variables):
        rows.titles = tuple(map(str, variables))
    return rows, table


def _obs(source: Any, ids: str | None) -> Columns:
    """Return the table obs. The ids of its rows are obs_names, unless `ids` names a column."""
    if is_a(source, "anndata", "AnnData"):
        name, frame = "obs of AnnData", source.obs
    else:
        path = local_path(source)
        name, frame = f"obs of {path.name}", _stored(path, "obs")
    if not len(frame.columns):
        raise InputError(
            f"{name} has no columns, but nearid takes labels, batches and factors from the columns of obs."
        )
    if ids is not None:
        return _frame(frame, name, ids.removeprefix("obs/"))
    names = frame.index.astype(str)
    table = _frame(frame.reset_index(drop=True), name, None)
    return table._replace(ids=row_ids(name, np.asarray(names, dtype=object), len(names)), index=names)


def _stored(path: Path, part: str) -> Any:
    """Return the table obs or var of an .h5ad file."""
    try:
        from anndata.io import read_elem
    except ImportError:
        raise InputError(
            f"{path.name} can only be read with anndata. Install it: pip install 'nearid[anndata]'"
        ) from None
    with opened(str(path), path.name) as file, damage_told(path.name, ".h5ad file"):
        return read_elem(file[part])
