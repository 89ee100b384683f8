"""Rows of AnnData, as an object or an .h5ad file: an entry of obsm, or X, named by obs_names; read without anndata."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nearid.arrays.formats.hdf5 import Hdf5Rows, find_dataset, open_hdf5, opened, read_values
from nearid.arrays.memory import MemoryRows
from nearid.arrays.names import not_found
from nearid.arrays.rows import row_ids
from nearid.base.errors import InputError

# Parts that have a row for each observation, which obs_names name.
OBSERVED = ("X", "obsm", "layers", "raw")


def open_h5ad(path: str, name: str, key: str | None, ids: str | None) -> Hdf5Rows:
    """Open an entry of obsm, X or any other dataset of an .h5ad file, which is read block by block."""
    with opened(path, name) as file:
        place = _place(file, name, key)
        names = _obs_names(file, name) if ids is None else None
    rows = open_hdf5(path, name, place, ids)
    if names is not None and rows.key.partition("/")[0] in OBSERVED:
        rows.ids = row_ids(rows.name, names, rows.shape[0])
    return rows


def open_cells(cells: Any, name: str, key: str | None, ids: str | None) -> MemoryRows:
    """Open an entry of obsm, X or an entry of layers of an AnnData object."""
    parts = {"X": cells.X, **{f"layers/{entry}": values for entry, values in cells.layers.items()}}
    parts |= {f"obsm/{entry}": values for entry, values in cells.obsm.items()}
    place = only_embedding(name, list(cells.obsm)) or "X" if key is None else key.strip("/")
    place = f"obsm/{place}" if place in cells.obsm else place
    if parts.get(place) is None:
        held = [entry.removeprefix("obsm/") for entry, values in parts.items() if values is not None]
        raise not_found(name, "key", place.removeprefix("obsm/"), held)
    if hasattr(parts[place], "toarray"):
        raise InputError(f"{place} of {name} is sparse. Give an embedding in obsm, or make it dense.")
    index = cells.obs_names.astype(str)
    column = None if ids is None else ids.removeprefix("obs/")
    if column is not None and column != "_index":
        if column not in cells.obs:
            raise not_found(name, "ids", column, map(str, cells.obs))
        return MemoryRows(f"{name}:{place}", np.asarray(parts[place]), np.asarray(cells.obs[column]))
    return MemoryRows(f"{name}:{place}", np.asarray(parts[place]), np.asarray(index, dtype=np.str_), index=index)


def only_embedding(name: str, held: Sequence[str]) -> str | None:
    """The entry of obsm to read where no key names one: the only one, or None where there is none."""
    if len(held) > 1:
        raise InputError(
            f"{name} has several embeddings in obsm: {', '.join(held)}. Name one: key={held[0]!r} (--key)."
        )
    return f"obsm/{held[0]}" if held else None


def _place(file: Any, name: str, key: str | None) -> str | None:
    """Where a key leads: to an entry of obsm, or a path in the file. None leaves the choice to `open_hdf5`."""
    held = list(_group(file, "obsm") or ())
    if key is None:
        return only_embedding(name, held) or ("X" if "X" in file else None)
    place = key.strip("/")
    if "/" not in place and place not in (*held, *file):
        raise not_found(name, "key", place, [*held, "X"])
    return f"obsm/{place}" if place in held else place


def _group(file: Any, part: str) -> Any:
    """A group of the file, unless it is only a link that could leave the file."""
    import h5py

    here = isinstance(file.get(part, getlink=True), h5py.HardLink) and isinstance(file[part], h5py.Group)
    return file[part] if here else None


def _obs_names(file: Any, name: str) -> np.ndarray | None:
    """The index of obs; None where there is none, as in a file of an early anndata."""
    obs = _group(file, "obs")
    column = None if obs is None else obs.attrs.get("_index")
    if not isinstance(column, str):
        return None
    place = f"obs/{column}"
    # Text that may be missing is stored as values and a mask.
    place += "/values" if _group(obs, column) is not None else ""
    return read_values(find_dataset(file, name, place, "ids"), f"{name}:{place}", slice(None))
