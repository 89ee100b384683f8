"""HDF5 files such as .mat 7.3, and AnnData in .h5ad files (read without anndata) and in memory."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from nearid.arrays.formats.registry import Contents, Format
from nearid.arrays.memory import MemoryRows, is_a, is_sparse
from nearid.arrays.names import Entry, few, not_found
from nearid.arrays.reading import damage_told
from nearid.arrays.rows import Rows, row_ids
from nearid.base.errors import InputError
from nearid.base.limits import check_memory


class Hdf5Contents(Contents):
    """The datasets of an HDF5 file by their paths."""

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        with opened(self.path, self.name) as file:
            return _declared(file)

    def find(self, wanted: str, option: str) -> str:
        with opened(self.path, self.name) as file:
            find_dataset(file, self.name, wanted, option)
        return wanted.strip("/")

    def array(self, entry: str) -> np.ndarray:
        with opened(self.path, self.name) as file:
            dataset, label = find_dataset(file, self.name, entry, "key"), self.label(entry)
            check_complete(dataset, label)
            check_memory(label, dataset.size * dataset.dtype.itemsize, "Save a part of it.")
            return read_values(dataset, label, slice(None) if dataset.shape else ())

    def rows(self, entry: str, ids: Any) -> "Hdf5Rows":
        return Hdf5Rows(self.path, self.name, entry, ids)


class Hdf5Rows(Rows):
    """Rows of the dataset at `key`. The file is opened for each block, so that other processes can read the rows."""

    def __init__(self, path: str, name: str, key: str, ids: Any) -> None:
        self._path, self.key = path, key
        with opened(path, name) as file:
            dataset = find_dataset(file, name, key, "key")
            super().__init__(f"{name}:{key}", dataset.shape, dataset.dtype, ids)
            check_complete(dataset, self.name)
            if dataset.chunks is not None:
                self.window = dataset.chunks[0]

    def _read(self, start: int, stop: int) -> np.ndarray:
        with opened(self._path, self.name) as file:
            return read_values(find_dataset(file, self.name, self.key, "key"), self.name, slice(start, stop))


@contextmanager
def opened(path: str, name: str) -> Iterator[Any]:
    """Open an HDF5 file for reading. If it is damaged, the error is one sentence."""
    import h5py

    advice = "Close the program that writes it, or write or copy it again."
    with damage_told(name, "HDF5 file", advice), h5py.File(path, "r") as file:
        yield file


def _declared(file: Any) -> dict[str, Entry]:
    import h5py

    entries: dict[str, Entry] = {}

    def add(path: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            entries[path] = Entry(item.shape, item.dtype)

    file.visititems(add)  # never follows links, so it stays within the file
    return entries


def find_dataset(file: Any, name: str, key: str, option: str) -> Any:
    """Return the dataset at `key`, without following links that could lead to another file."""
    import h5py

    item = file
    for part in key.strip("/").split("/"):
        if part == ".":
            continue
        link = item.get(part, getlink=True) if isinstance(item, h5py.Group) else None
        if link is None:
            raise not_found(name, option, key, _declared(file))
        if isinstance(link, h5py.SoftLink):
            raise InputError(f"{key!r} in {name} is a link. Give its target {link.path!r} instead.")
        if isinstance(link, h5py.ExternalLink):
            raise InputError(
                f"{key!r} in {name} is a link to another file, {link.filename!r}, which nearid does not follow. "
                "Open that file instead."
            )
        item = item[part]
    if isinstance(item, h5py.Group):
        if "indptr" in item:
            raise InputError(f"{key!r} in {name} is a sparse matrix, not a dataset. Store it as a dense matrix.")
        raise InputError(f"{key!r} in {name} is a group, not a dataset. It holds {', '.join(map(repr, item))}.")
    if item.shape is None:
        raise InputError(f"{key!r} in {name} is an empty dataset, but rows of numbers are expected.")
    if item.is_virtual or item.external:
        raise InputError(
            f"{name} stores the numbers of {key!r} in other files, which nearid does not read. Copy them into one "
            "dataset first."
        )
    return item


def check_complete(dataset: Any, label: str) -> None:
    """Raise an error if parts of a dataset were never written, because HDF5 would read them as the fill value."""
    if dataset.chunks is None:
        # The size of the type in the file: numpy reads types that it does not have, such as bfloat16, as wider ones.
        promised, held, unit = dataset.size * dataset.id.get_type().get_size(), dataset.id.get_storage_size(), "bytes"
    else:
        sizes = zip(dataset.shape, dataset.chunks, strict=True)
        promised, held, unit = (
            math.prod(-(-size // chunk) for size, chunk in sizes),
            dataset.id.get_num_chunks(),
            "chunks",
        )
        check_memory(f"A chunk of {label}", math.prod(dataset.chunks) * dataset.dtype.itemsize, "Use smaller chunks.")
    if held < promised:
        raise InputError(
            f"{label} has only {held} of its {promised} {unit}: the others were never written and would be read as "
            f"{dataset.fillvalue}. Finish writing it. If those rows really hold this value, write it explicitly."
        )


def read_values(dataset: Any, label: str, rows: slice | tuple[()]) -> np.ndarray:
    """Return rows of a dataset."""
    try:
        return np.asarray(dataset[rows])
    except OSError as error:
        raise InputError(
            f"{label} cannot be read: {error}. It is damaged, or compressed by a filter that is not installed "
            "(pip install hdf5plugin and import it)."
        ) from None


# Parts with one row per observation, whose ids are obs_names.
OBSERVED = ("X", "obsm", "layers", "raw")


class H5adContents(Hdf5Contents):
    """The datasets of an .h5ad file. Entries of obsm and layers need no path; obs_names are the ids."""

    def find(self, wanted: str, option: str) -> str:
        place = wanted.strip("/")
        if option == "key":
            with opened(self.path, self.name) as file:
                parents = {part: _group(file, part) for part in ("obsm", "layers")}
                held, layers = (list(parent or ()) for parent in parents.values())
                if "/" not in place and place not in (*held, *layers, *file):
                    raise not_found(self.name, "key", place, [*held, *layers, "X"])
                part = "obsm" if place in held else "layers" if place in layers and place not in file else ""
                stored = _group(parents[part] if part else file, place) if "/" not in place else None
                if stored is not None and "indptr" in stored:
                    dense = [e for parent in parents.values() for e in parent or () if _group(parent, e) is None]
                    raise _sparse(self.name, place, dense)
            place = f"{part}/{place}" if part else place
        return super().find(place, option)

    def beside(self, wanted: str | None) -> tuple[list[str], Any]:
        """Return the names of the columns of obs, and the values of the wanted one."""
        with opened(self.path, self.name) as file:
            obs = _group(file, "obs")
            names = [name for name in obs or () if not name.startswith("__")]
            column = None if wanted is None else wanted.removeprefix("obs/")
            return names, _obs_column(file, self.name, str(column)) if column in names else None

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
    """Return rows of an entry of obsm, of X, or of an entry of layers of an AnnData object."""
    parts = {"X": cells.X, **{f"layers/{entry}": values for entry, values in cells.layers.items()}}
    parts |= {f"obsm/{entry}": values for entry, values in cells.obsm.items()}
    place = _only_embedding(name, list(cells.obsm)) or "X" if key is None else key.strip("/")
    part = "obsm/" if place in cells.obsm else "layers/" if place in cells.layers and place != "X" else ""
    place = f"{part}{place}"
    if parts.get(place) is None:
        held = [entry.removeprefix("obsm/") for entry, values in parts.items() if values is not None]
        raise not_found(name, "key", place.removeprefix("obsm/"), held)
    if _is_sparse(parts[place]):
        raise _sparse(name, place, [e for e, values in parts.items() if values is not None and not _is_sparse(values)])
    index = cells.obs_names.astype(str)
    column = None if ids is None else ids.removeprefix("obs/")
    if column is not None and column != "_index":
        if column not in cells.obs:
            raise not_found(name, "ids", column, map(str, cells.obs))
        rows = MemoryRows(f"{name}:{place}", np.asarray(parts[place]), np.asarray(cells.obs[column]))
    else:
        rows = MemoryRows(f"{name}:{place}", np.asarray(parts[place]), np.asarray(index, dtype=object), index=index)
    rows.origin = cells.obs
    return rows


def _is_sparse(part: Any) -> bool:
    """Return whether a part of AnnData is sparse, in memory or in the file of an object in backed mode."""
    return is_sparse(part) or is_a(part, "anndata", "BaseCompressedSparseDataset")


def _sparse(name: str, place: str, dense: Sequence[str]) -> InputError:
    """The refusal of a sparse matrix, with the entries that can be named instead."""
    entries = [entry.removeprefix("obsm/").removeprefix("layers/") for entry in dense]
    instead = (
        f"Name a dense entry instead: key={entries[0]!r} (--key {entries[0]}). Dense entries: {few(entries)}."
        if entries
        else "Store an embedding in obsm, or a dense copy in layers: adata.layers['dense'] = adata.X.toarray()."
    )
    return InputError(f"{place} of {name} is a sparse matrix, but rows of an embedding must be dense. {instead}")


def _only_embedding(name: str, held: Sequence[str]) -> str | None:
    """Return the entry of obsm to read without a key: the only entry, or None if obsm is empty."""
    if len(held) > 1:
        raise InputError(
            f"{name} has several embeddings in obsm: {', '.join(held)}. Choose one: key={held[0]!r} (--key)."
        )
    return f"obsm/{held[0]}" if held else None


def _group(file: Any, part: str) -> Any:
    """Return a group of the file, unless it is a link that could lead to another file."""
    import h5py

    here = isinstance(file.get(part, getlink=True), h5py.HardLink) and isinstance(file[part], h5py.Group)
    return file[part] if here else None


def _obs_column(file: Any, name: str, column: str) -> np.ndarray:
    """Return the values of a column of obs, with None for missing values."""

    def read(place: str) -> np.ndarray:
        return read_values(find_dataset(file, name, place, "blocks"), f"{name}:{place}", slice(None))

    place = f"obs/{column}"
    parts = _group(file["obs"], column)
    if parts is None:
        values = read(place)
        # Early versions of anndata stored the categories elsewhere, so these are the numbers of the categories.
        is_missing = values < 0 if "categories" in file[place].attrs else None
    elif "codes" in parts:
        codes = read(f"{place}/codes")
        values, is_missing = read(f"{place}/categories")[codes], codes < 0
    else:
        values, is_missing = read(f"{place}/values"), read(f"{place}/mask")
    if is_missing is not None and is_missing.any():
        values = values.astype(object)
        values[is_missing] = None
    return values


def _obs_names(file: Any, name: str) -> np.ndarray | None:
    """Return the index of obs; None if there is none, as in files of early versions of anndata."""
    obs = _group(file, "obs")
    column = None if obs is None else obs.attrs.get("_index")
    if not isinstance(column, str):
        return None
    place = f"obs/{column}"
    # Text with missing values is stored as values and a mask.
    place += "/values" if _group(obs, column) is not None else ""
    return read_values(find_dataset(file, name, place, "ids"), f"{name}:{place}", slice(None))


HDF5 = Format((".h5", ".hdf5"), Hdf5Contents)
H5AD = Format((".h5ad",), H5adContents)
