"""Opening any source as rows of numbers, or as one vector."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.blocks import with_blocks
from nearid.arrays.formats.hdf5 import open_cells
from nearid.arrays.formats.layers import name_rows
from nearid.arrays.memory import MemoryRows, TensorRows, as_numpy, is_a, open_array, open_frame, open_polars
from nearid.arrays.metadata import choose_columns
from nearid.arrays.names import refuse_names, whole_name
from nearid.arrays.paths import Place, is_there, known_format, name_of, open_contents, place_of, split_key, whole
from nearid.arrays.reading import FileState, reached
from nearid.arrays.rows import Rows, row_ids
from nearid.base.errors import InputError
from nearid.base.options import checked


@checked
def open_rows(
    source: Any,
    *,
    key: str | None = None,
    ids: Any = None,
    name: str | None = None,
    features: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
    blocks: Any = None,
) -> Rows:
    """Open an array, a tensor, a DataFrame, a Series (one column) or a file as rows of numbers.

    Parameters
    ----------
    source : array-like, tensor, DataFrame or Series (pandas or polars), AnnData, str, os.PathLike or Rows
        What to open. The suffix of a file determines its format. A file of type .npy, .parquet or .zarr may be at an
        address that begins with s3://, gs://, https:// or memory:// (extra `remote`). From a folder
        that `extract` wrote, one layer is opened. A key may also follow the path, as in "model.pt:fc.weight". Rows
        that are already open keep their data.
    key : str, optional
        The array to read if a file holds several: the entry of an archive, the path of a dataset, the dotted name of
        a nested entry, the list column of a parquet file, or the layer of an extraction. For AnnData and .h5ad files
        it is an entry of obsm. By default, nearid reads the only entry of obsm, or X if obsm is empty.
    ids : str or array-like of shape (n,), optional
        Ids of the rows: the name of a column, the name of another entry of the same file, or the ids themselves. For
        AnnData and .h5ad files the default is obs_names.
    name : str, optional
        Name of the rows in messages and reports. Default: the file name.
    features, exclude : sequence of str or str, optional
        Columns to use (default: all) and columns to leave out. Give names or patterns such as "emb_*", as a list or
        as one string with commas. Columns without names are called by their position, counted from 0.
    blocks : str, array-like of shape (n,), Series or os.PathLike, optional
        Labels of rows that belong together, such as the tokens of one text or the cells of one well. Give the name of
        a column or of another entry of the same source (for AnnData a column of obs), a file with one label per row,
        or the labels themselves. A column of blocks is not used as a feature. "none" ignores blocks that are stored
        in the source. Default: the blocks that are stored in the source, if any.

    Returns
    -------
    Rows
        The rows with their shape, names and ids. The numbers are read when they are needed.

    Raises
    ------
    InputError
        If the source cannot be used. The message explains why and what to do.

    Examples
    --------
    >>> import nearid, numpy as np
    >>> rows = nearid.open_rows(np.arange(12.0).reshape(4, 3), ids=["a", "b", "c", "d"], exclude="1")
    >>> rows.shape, rows.read(1, 3).tolist()
    ((4, 2), [[3.0, 5.0], [6.0, 8.0]])
    """
    if isinstance(source, Rows):
        if key is not None or ids is not None or name is not None:
            raise InputError(f"{source.name} is already open. Pass key, ids and name when you open it.")
        return choose_columns([with_blocks(source, blocks)], features, exclude)[0]
    by_name = ids if isinstance(ids, str) else None
    rows = _open(source, name, key, by_name)
    if name is not None:
        rows.name = name
    if ids is not None and by_name is None:
        rows.ids, rows.index = row_ids(rows.name, ids, rows.shape[0]), None
    return choose_columns([with_blocks(rows, blocks)], features, exclude)[0]


def _open(source: Any, name: str | None, key: str | None, ids: str | None) -> Rows:
    if isinstance(source, str | os.PathLike):
        return _open_path(place_of(source), key, ids)
    if is_a(source, "torch", "Tensor"):
        refuse_names(name or "tensor", "a tensor", key, ids)
        return TensorRows(name or "tensor", source)
    if is_a(source, "pandas", "DataFrame"):
        return open_frame(source, name or "table", key, ids)
    if is_a(source, "pandas", "Series"):
        # One column. Its index pairs the rows, like the index of a DataFrame.
        return open_frame(source.to_frame(str(source.name or 0)), name or "series", key, ids)
    if is_a(source, "polars", "Series"):
        return open_polars(source.alias(source.name or "0").to_frame(), name or "series", key, ids)
    if is_a(source, "polars", "DataFrame"):
        return open_polars(source, name or "table", key, ids)
    if is_a(source, "anndata", "AnnData"):
        return open_cells(source, name or "AnnData", key, ids)
    return open_array(source, name or "array", key, ids)


def _open_path(place: Place, key: str | None, ids: str | None) -> Rows:
    if key is None:
        place, key = split_key(place)
    with reached(place):
        return _open_existing(place, key, ids)


def _open_existing(place: Place, key: str | None, ids: str | None) -> Rows:
    known, absolute = known_format(place), whole(place)
    state = None if known.is_folder else FileState(absolute)
    rows = known.open(absolute, name_of(place), key, ids)
    if state is not None:
        state.check(rows.name)
        if not isinstance(rows, MemoryRows):
            rows.file_state = state
    # A file in a format that `extract` writes may be one layer of an extraction, which keeps the ids in another file.
    if known.writes and isinstance(place, Path):
        name_rows(rows, place)
    rows.origin = absolute
    return rows


def read_vector(source: Any, name: str) -> np.ndarray:
    """Return a one-dimensional array of finite numbers, read from an array, a tensor, PATH or PATH:ENTRY."""
    values = source
    if isinstance(source, str | os.PathLike):
        values = vector_in(*split_key(source))
        if values is None:
            raise InputError(
                f"{name}: there is no vector {source}. Give an .npy file, or FILE:ENTRY for an entry of a checkpoint."
            )
    array = as_numpy(values)
    if array.ndim != 1 or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise InputError(
            f"{name} has shape {array.shape} and dtype {array.dtype}, but a one-dimensional array of finite numbers is "
            "expected."
        )
    return array.astype(np.float64)


def vector_in(path: Place, key: str | None) -> np.ndarray | None:
    """Return the named array of a file, or its only array; None if the file has no such entry."""
    if not is_there(path) or os.path.isdir(path):
        return None
    contents = open_contents(path)
    entry = "" if key is None else whole_name(key, contents.names)
    with reached(path):
        return as_numpy(contents.array(entry)) if entry in contents.names else None
