"""Rows of AnnData, as an object or an .h5ad file: an entry of obsm, or X, named by obs_names; read without anndata."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nearid.arrays.formats.hdf5 import Hdf5Contents, Hdf5Rows, find_dataset, opened, read_values
from nearid.arrays.formats.registry import Format
from nearid.arrays.memory import MemoryRows
from nearid.arrays.names import not_found
from nearid.arrays.rows import Rows, row_ids
from nearid.base.errors import InputError

# Parts that have a row for each observation, which obs_names name.
OBSERVED = ("X", "obsm", "layers", "raw")


class H5adContents(Hdf5Contents):
    """The datasets of an .h5ad file; entries of obsm need no path, and obs_names name what has a row for each."""

    def find(self, wanted: str, option: str) -> str:
        place = wanted.strip("/")
        if option == "key":
            with opened(self.path, self.name) as file:
                held = list(_group(file, "obsm") or ())
                if "/" not in place and place not in (*held, *file):
                    raise not_found(self.name, "key", place, [*held, "X"])
            place = f"obsm/{place}" if place in held else place
        return super().find(place, option)

    def open(self, key: str | None, ids: str | None) -> Rows:
        with opened(self.path, self.name) as file:
            if key is None:
                key = _only_embedding(self.name, list(_group(file, "obsm") or ())) or ("X" if "X" in file else None)
            names = _obs_names(file, self.name) if ids is None else None
        rows = super().open(key, ids)
        if names is not None and isinstance(rows, Hdf5Rows) and rows.key.partition("/")[0] in OBSERVED:
            rows.ids = row_ids(rows.name, names, rows.shape[0])
        return rows


def open_cells(cells: Any, name: str, key: str | None, ids: str | None) -> MemoryRows:
    """Open an entry of obsm, X or an entry of layers of an AnnData object."""
    parts = {"X": cells.X, **{f"layers/{entry}": values for entry, values in cells.layers.items()}}
    parts |= {f"obsm/{entry}": values for entry, values in cells.obsm.items()}
    place = _only_embedding(name, list(cells.obsm)) or "X" if key is None else key.strip("/")
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


def _only_embedding(name: str, held: Sequence[str]) -> str | None:
    """The entry of obsm to read where no key names one: the only one, or None where there is none."""
    if len(held) > 1:
        raise InputError(
            f"{name} has several embeddings in obsm: {', '.join(held)}. Name one: key={held[0]!r} (--key)."
        )
    return f"obsm/{held[0]}" if held else None


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


H5AD = Format((".h5ad",), H5adContents)
