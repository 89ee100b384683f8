"""Folders of extracted layers: a file for each layer, the ids of the rows beside them, and what made them."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.formats.npy import open_npy, read_npy
from nearid.arrays.formats.safetensors import open_safetensors
from nearid.arrays.formats.zarr import open_zarr
from nearid.arrays.names import Entry, choose, not_found
from nearid.arrays.reading import FileState, damage_told, reached
from nearid.arrays.rows import Rows, row_ids
from nearid.base.errors import InputError
from nearid.base.files import local_path

MANIFEST, IDS = "extraction.json", "ids.npy"
FORMAT = 1
_OPENERS = {".npy": open_npy, ".zarr": open_zarr, ".safetensors": open_safetensors}


class Extraction(Mapping[str, Rows]):
    """Layers of a model as rows of numbers, by name.

    Attributes
    ----------
    folder : Path or None
        Where they are; None in memory.
    provenance : dict
        What made them: model and data with their hashes, layers, pooling, options and versions.
    notes : tuple of str
        Sentences worth telling the user.
    """

    def __init__(
        self, folder: Path | None, provenance: dict[str, Any], rows: Mapping[str, Rows], notes: tuple[str, ...] = ()
    ) -> None:
        self.folder, self.provenance, self.notes = folder, provenance, notes
        self._rows = dict(rows)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> "Extraction":
        """The layers of a folder that `extract` wrote."""
        place = local_path(folder)
        if not is_extraction(place):
            raise InputError(f"{place} is no folder of extracted layers: it has no {MANIFEST}. Make one with extract.")
        told = read_manifest(place)
        whole, ids = Path(os.path.abspath(place)), _read_ids(place, told["rows"])
        with reached(place):
            return cls(place, told, {layer: _open(whole, told, layer, ids) for layer in told["layers"]})

    def __getitem__(self, layer: str) -> Rows:
        if layer not in self._rows:
            raise KeyError(str(not_found("The extraction", "layer", layer, self._rows)))
        return self._rows[layer]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        widths = ", ".join(f"{layer} ({rows.shape[1]})" for layer, rows in self._rows.items())
        return f"<Extraction of {self.provenance['rows']} rows from {self.provenance['model']['name']}: {widths}>"


def is_extraction(folder: Path) -> bool:
    """Whether a folder holds extracted layers."""
    return os.path.isfile(folder / MANIFEST)


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a folder says of its layers and of what made them, checked as far as it is used."""
    path = folder / MANIFEST
    with damage_told(str(path), "extraction.json"):
        found = json.loads(path.read_text(encoding="utf-8"))
    match found:
        case {"format": int(version)} if version > FORMAT:
            raise InputError(f"{path} has format {version}, but this nearid knows {FORMAT} at most. Update nearid.")
        case {"format": 1, "rows": int(n), "layers": dict(layers), "model": {"name": str()}} if layers:
            if isinstance(found.get("data", {}), dict) and all(_sound(layer, n) for layer in layers.values()):
                return dict(found)
    raise InputError(f"{path} does not describe extracted layers: it is damaged or of something else. Extract again.")


def _sound(layer: Any, n: int) -> bool:
    match layer:
        case {"file": str(file), "shape": [int(rows), int()], "dtype": "float16" | "float32" | "float64"}:
            # A plain name, so that no file outside the folder is opened.
            return rows == n and file == os.path.basename(file) and Path(file).suffix in _OPENERS
    return False


def open_layer(path: str, name: str, key: str | None, ids: str | None) -> Rows:
    """Open one layer of a folder, with the ids of its rows."""
    folder = Path(path)
    told = read_manifest(folder)
    layers = told["layers"]
    if ids not in (None, "ids"):
        raise InputError(f"{name} has ids of its own in {IDS}, and nothing named {ids!r} to take others from.")
    if key is None and len(layers) > 1:
        raise InputError(
            f"{name} holds {len(layers)} layers: {', '.join(list(layers)[:20])}{', ...' if len(layers) > 20 else ''}. "
            f"Name one as {name}:{list(layers)[-1]}, or compare all with compare_layers (--layers all)."
        )
    chosen = choose(name, {k: Entry(tuple(v["shape"]), np.dtype(v["dtype"])) for k, v in layers.items()}, key)
    return _open(folder, told, chosen, _read_ids(folder, told["rows"]))


def _open(folder: Path, told: dict[str, Any], layer: str, ids: np.ndarray) -> Rows:
    file, shape = told["layers"][layer]["file"], told["layers"][layer]["shape"]
    if not (folder / file).exists():
        raise InputError(f"{folder.name} lacks {file}, the rows of its layer {layer}. Copy it again, or extract again.")
    state = None if Path(file).suffix == ".zarr" else FileState(str(folder / file))
    rows = _OPENERS[Path(file).suffix](str(folder / file), file, None, None)
    if list(rows.shape) != shape:
        raise InputError(f"{folder / file} has shape {rows.shape}, not {shape}. Extract again.")
    rows.name = f"{folder.name}:{layer}"
    rows.ids, rows.file_state = ids, state
    rows.inputs_sha256 = told.get("data", {}).get("sha256")
    return rows


def name_rows(rows: Rows, path: Path) -> None:
    """Give rows that were opened from one file of an extraction the ids that lie beside it."""
    if rows.ids is None and is_extraction(path.parent):
        told = read_manifest(path.parent)
        if any((layer["file"], layer["shape"]) == (path.name, [*rows.shape]) for layer in told["layers"].values()):
            rows.ids = _read_ids(path.parent, told["rows"])
            rows.inputs_sha256 = told.get("data", {}).get("sha256")


def _read_ids(folder: Path, n: int) -> np.ndarray:
    with damage_told(str(folder / IDS), ".npy file"):
        return row_ids(folder.name, read_npy(folder / IDS), n)
