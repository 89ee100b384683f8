"""Zarr directories, format 2 or 3."""

import math
from typing import Any

import numpy as np

from nearid.arrays.choose import Entry, choose, not_found
from nearid.arrays.damage import damage_told
from nearid.arrays.memory import check_memory
from nearid.arrays.rows import Rows
from nearid.errors import InputError


class ZarrRows(Rows):
    """Rows of a zarr array, read chunk by chunk."""

    def __init__(self, name: str, array: Any, ids: Any = None) -> None:
        super().__init__(name, array.shape, array.dtype, ids)
        _check_complete(array, name)
        self._array = array
        self.window = array.chunks[0]

    def _read(self, start: int, stop: int) -> np.ndarray:
        return _values(self._array, self.name, slice(start, stop))


def open_zarr(path: str, name: str, key: str | None, ids: str | None) -> ZarrRows:
    """Open a zarr directory: an array, or an array of a group."""
    import zarr

    with damage_told(name, "zarr directory", "Give the directory that zarr wrote."):
        root = zarr.open(path, mode="r")
        arrays = dict(root.members(max_depth=None)) if isinstance(root, zarr.Group) else {"": root}
    arrays = {entry: array for entry, array in arrays.items() if isinstance(array, zarr.Array)}
    entries = {entry: Entry(array.shape, array.dtype) for entry, array in arrays.items()}
    chosen = choose(name, entries, None if key is None else key.strip("/"))
    if ids is not None and ids.strip("/") not in arrays:
        raise not_found(name, "ids", ids, arrays)
    id_values = None if ids is None else _read_ids(arrays[ids.strip("/")], f"{name}:{ids}")
    return ZarrRows(f"{name}:{chosen}" if chosen else name, arrays[chosen], id_values)


def _check_complete(array: Any, name: str) -> None:
    """Refuse missing chunks, which zarr would read as the fill value."""
    missing = array.nchunks - array.nchunks_initialized
    if missing > 0:
        raise InputError(
            f"{name} lacks {missing} of its {array.nchunks} chunks, which would read as {array.fill_value}: "
            "it was not written or copied completely. If those chunks really hold nothing but that value, "
            "rewrite the array with write_empty_chunks=True."
        )
    check_memory(f"A chunk of {name}", math.prod(array.chunks) * array.dtype.itemsize, "Use smaller chunks.")


def _values(array: Any, name: str, rows: slice) -> np.ndarray:
    with damage_told(name, "zarr array"):
        return np.asarray(array[rows])


def _read_ids(array: Any, name: str) -> np.ndarray:
    _check_complete(array, name)
    return _values(array, name, slice(None))
