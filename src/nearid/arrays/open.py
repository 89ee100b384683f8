"""Opening any source as rows of numbers, or as one vector."""

import os
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.formats.csv import open_csv
from nearid.arrays.formats.h5ad import open_cells, open_h5ad
from nearid.arrays.formats.hdf5 import open_hdf5
from nearid.arrays.formats.layers import is_extraction, name_rows, open_layer
from nearid.arrays.formats.npy import open_npy, read_npy
from nearid.arrays.formats.npz import load_member, members_of, open_npz
from nearid.arrays.formats.parquet import open_parquet
from nearid.arrays.formats.safetensors import find_vector, open_safetensors
from nearid.arrays.formats.torch import CHECKPOINTS, entries_of, load_saved, open_checkpoint
from nearid.arrays.formats.zarr import open_zarr
from nearid.arrays.memory import MemoryRows, TensorRows, is_a, open_array, open_frame, open_polars
from nearid.arrays.metadata import choose_columns
from nearid.arrays.names import refuse_names, whole_name
from nearid.arrays.reading import FileState, damage_told, missing, reached
from nearid.arrays.rows import Rows, row_ids
from nearid.base.errors import InputError
from nearid.base.files import local_path
from nearid.base.options import checked

_OPENERS: dict[str, Callable[[str, str, str | None, str | None], Rows]] = {
    ".npy": open_npy,
    ".npz": open_npz,
    ".safetensors": open_safetensors,
    ".csv": open_csv,
    ".tsv": open_csv,
    ".csv.gz": open_csv,
    ".tsv.gz": open_csv,
    ".parquet": open_parquet,
    ".h5": open_hdf5,
    ".hdf5": open_hdf5,
    ".h5ad": open_h5ad,
    ".zarr": open_zarr,
    **dict.fromkeys(CHECKPOINTS, open_checkpoint),
}
_PICKLES = (".pkl", ".pickle", ".joblib")


@checked
def open_rows(
    source: Any,
    *,
    key: str | None = None,
    ids: Any = None,
    name: str | None = None,
    features: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
) -> Rows:
    """Open an array, a tensor, a DataFrame or a file as rows of numbers.

    Parameters
    ----------
    source : array-like, torch.Tensor, pandas.DataFrame, polars.DataFrame, AnnData, str, os.PathLike or Rows
        What to open. Files are told apart by their suffix; of a folder that `extract` wrote, a layer is opened. A key
        may also stand behind the path, as in "model.pt:fc.weight". Rows that are open already are returned as they are.
    key : str, optional
        Which array of a file that holds several: the entry of an archive, the path of a dataset,
        the dotted name of a nested entry, the column of lists of a parquet file, or the layer of an extraction. Of
        AnnData and .h5ad files the entry of obsm; by default the only one, or X where there is none.
    ids : str or array-like of shape (n,), optional
        What names the rows: a column, another entry of the same file, or the ids themselves. Rows of AnnData and .h5ad
        files are named by obs_names by default.
    name : str, optional
        What to call the rows in messages and reports; the file name by default.
    features, exclude : sequence of str or str, optional
        Columns to use, all by default, and columns to leave out: names or patterns, as "emb_*", one by one or in a
        text with commas. Columns without names are named by their place, counted from 0.

    Returns
    -------
    Rows

    Raises
    ------
    InputError
        If the source cannot be used; the message says why and what to do.
    """
    if isinstance(source, Rows):
        if key is not None or ids is not None or name is not None:
            raise InputError(f"{source.name} is open already, so key, ids and name must be given when opening it.")
        return choose_columns([source], features, exclude)[0]
    by_name = ids if isinstance(ids, str) else None
    rows = _open(source, name, key, by_name)
    if name is not None:
        rows.name = name
    if ids is not None and by_name is None:
        rows.ids, rows.index = row_ids(rows.name, ids, rows.shape[0]), None
    return choose_columns([rows], features, exclude)[0]


def _open(source: Any, name: str | None, key: str | None, ids: str | None) -> Rows:
    if isinstance(source, str | os.PathLike):
        return _open_path(local_path(source), key, ids)
    if is_a(source, "torch", "Tensor"):
        refuse_names(name or "tensor", "a tensor", key, ids)
        return TensorRows(name or "tensor", source)
    if is_a(source, "pandas", "DataFrame"):
        return open_frame(source, name or "table", key, ids)
    if is_a(source, "polars", "DataFrame"):
        return open_polars(source, name or "table", key, ids)
    if is_a(source, "anndata", "AnnData"):
        return open_cells(source, name or "AnnData", key, ids)
    return open_array(source, name or "array", key, ids)


def _open_path(path: Path, key: str | None, ids: str | None) -> Rows:
    if key is None:
        path, key = split_key(path)
    if not os.path.exists(path):
        raise missing(path)
    with reached(path):
        return _open_existing(path, key, ids)


def _open_existing(path: Path, key: str | None, ids: str | None) -> Rows:
    suffix = file_suffix(path)
    if suffix in _PICKLES:
        raise InputError(
            f"{path.name} is a pickle, which could run code when loaded; nearid never unpickles. "
            "Save the numbers instead, for example with np.save('rows.npy', x) or DataFrame.to_parquet(path)."
        )
    if is_extraction(path):
        return open_layer(os.path.abspath(path), path.name, key, ids)
    if path.is_dir() and suffix != ".zarr":
        raise InputError(f"{path} is a directory, but a file (or a directory named *.zarr) is expected.")
    if suffix not in _OPENERS:
        raise InputError(f"{path.name} has no suffix that can be opened. Supported: {', '.join(_OPENERS)}.")
    if not path.is_dir() and (suffix == ".zarr" or not path.is_file()):
        raise InputError(f"{path} is not a {'zarr directory' if suffix == '.zarr' else 'regular file'}.")
    # Whole, because the rows may be read by a worker process that was started elsewhere.
    whole = os.path.abspath(path)
    if path.is_dir():
        rows = _OPENERS[suffix](whole, path.name, key, ids)
        name_rows(rows, path)
        return rows
    # Where it may not be read, some libraries would call it damaged.
    path.open("rb").close()
    state = FileState(whole)
    rows = _OPENERS[suffix](whole, path.name, key, ids)
    name_rows(rows, path)
    state.check(rows.name)
    if not isinstance(rows, MemoryRows):
        rows.file_state = state
    return rows


def split_key(source: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """A path, and the entry that is named after it as in model.pt:linear.weight or run:layer3."""
    text = os.fspath(source)
    path = local_path(text)
    before, colon, after = text.rpartition(":")
    if colon and after and not os.path.exists(path) and os.path.exists(local_path(before)):
        return local_path(before), after
    return path, None


def file_suffix(path: Path) -> str:
    """The suffix that says what a file is, in lower case; .csv.gz counts as one."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])


def read_vector(source: Any, name: str) -> np.ndarray:
    """Finite numbers in one dimension, from an array, a tensor, or a file as path or path:entry."""
    found = source
    if isinstance(source, str | os.PathLike):
        path, key = split_key(source)
        found = vector_in(path, key)
        if found is None:
            raise InputError(f"{name}: there is no vector {source}. Give it as .npy, or as FILE:ENTRY of a checkpoint.")
    array = _plain(found)
    if array.ndim != 1 or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise InputError(f"{name} has shape {array.shape} and dtype {array.dtype}; a vector of numbers is expected.")
    return array.astype(np.float64)


def vector_in(path: Path, key: str | None) -> np.ndarray | None:
    """A vector of a file by name; None where the file holds no such entry, or is of a kind without names."""
    if not os.path.isfile(path):
        return None
    with reached(path):
        return _vector_in(path, key)


def _vector_in(path: Path, key: str | None) -> np.ndarray | None:
    suffix = file_suffix(path)
    if suffix == ".npy" and key is None:
        with damage_told(path.name, ".npy file"):
            return read_npy(path)
    if key is None:
        return None
    if suffix == ".safetensors":
        return find_vector(str(path), path.name, key)
    if suffix in CHECKPOINTS:
        entries = entries_of(load_saved(str(path), path.name), path.name)
        held = entries.get(whole_name(key, entries))
        return None if held is None else _plain(held)
    if suffix == ".npz":
        with damage_told(path.name, ".npz archive"), zipfile.ZipFile(path) as archive:
            members = members_of(archive, path.name)
            return load_member(archive, members[key], f"{path.name}:{key}") if key in members else None
    return None


def _plain(held: Any) -> np.ndarray:
    return np.asarray(held.detach().double().numpy(force=True) if is_a(held, "torch", "Tensor") else held)
