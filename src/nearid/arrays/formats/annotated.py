"""AnnData: an embedding with a table about its rows, as an object or an .h5ad file."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.columns import Columns, named_columns
from nearid.arrays.damage import damage_told
from nearid.arrays.formats.h5ad import open_cells
from nearid.arrays.formats.hdf5 import opened
from nearid.arrays.held import is_a
from nearid.arrays.open import file_suffix, open_rows
from nearid.arrays.rows import Rows
from nearid.base.errors import InputError
from nearid.base.files import local_path


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
    return open_cells(cells, "AnnData", key, None), _table("obs of AnnData", cells.obs)


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
    table = _table(f"obs of {path.name}", frame)
    rows.ids, rows.index = table.ids, table.index
    return rows, table


def _table(name: str, frame: Any) -> Columns:
    names = frame.index.astype(str)
    table = named_columns(frame.reset_index(drop=True), name=name)
    if table is None:
        raise InputError(f"{name} has no columns.")
    return table._replace(ids=np.asarray(names, dtype=np.str_), index=names)
