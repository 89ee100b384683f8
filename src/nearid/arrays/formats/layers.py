"""Folders of extracted layers: one file per layer, a file with the ids of the rows, and a manifest."""

import json
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from nearid.arrays.formats.npy import read_npy
from nearid.arrays.formats.registry import Contents, Format, format_of
from nearid.arrays.names import Entry, few, not_found
from nearid.arrays.reading import FileState, damage_told, reached
from nearid.arrays.rows import Rows, row_ids
from nearid.base.errors import InputError
from nearid.base.files import local_path

MANIFEST, IDS, BLOCKS, LABELS = "extraction.json", "ids.npy", "blocks.npy", "labels.npy"
FORMAT = 1


class LayerRows(Mapping[str, Rows]):
    """Layers of a model as rows of numbers: a mapping from layer names to `Rows`.

    Attributes
    ----------
    folder : Path or None
        The folder that holds the layers. None if they are in memory.
    provenance : dict
        How the layers were made: model and data with their hashes, layers, pooling, options and versions.
    labels : ndarray of shape (n,) or None
        One label per row, if the extraction wrote labels.
    """

    def __init__(
        self,
        folder: Path | None,
        provenance: dict[str, Any],
        rows: Mapping[str, Rows],
        *,
        labels: np.ndarray | None = None,
    ) -> None:
        self.folder, self.provenance, self._rows, self.labels = folder, provenance, dict(rows), labels

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Self:
        """Return the layers of a folder that `extract` wrote.

        Parameters
        ----------
        folder : str or PathLike
        """
        place = local_path(folder)
        if not is_extraction(place):
            raise InputError(
                f"{place} is not a folder of extracted layers: it has no {MANIFEST}. Make one with extract, or compare "
                "two models on your own inputs: --data (compare_models)."
            )
        with reached(place):
            contents = LayersContents(os.path.abspath(place), place.name)
            rows = {layer: contents.rows(layer, None) for layer in contents.entries}
            return cls(place, contents.manifest, rows, labels=contents.labels)

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
        return f"<LayerRows, {self.provenance['rows']} rows, of {self.provenance['model']['name']}: {widths}>"


def is_extraction(folder: Path) -> bool:
    """Return whether a folder holds extracted layers."""
    return os.path.isfile(folder / MANIFEST)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder of layers. The parts that nearid uses are checked."""
    path = folder / MANIFEST
    with damage_told(str(path), "extraction.json"):
        manifest = json.loads(path.read_text(encoding="utf-8"))
    match manifest:
        case {"format": int(version)} if version > FORMAT:
            raise InputError(
                f"{path} has format {version}, but this version of nearid reads formats up to {FORMAT}. Update nearid."
            )
        case {"format": 1, "rows": int(n), "layers": dict(layers), "model": {"name": str()}} if layers:
            named = (manifest.get("blocks"), BLOCKS), (manifest.get("labels"), LABELS)
            known = isinstance(manifest.get("data", {}), dict) and all(name in (None, file) for name, file in named)
            if known and all(_sound(layer, n) for layer in layers.values()):
                return dict(manifest)
    raise InputError(
        f"{path} does not describe extracted layers: it is damaged or belongs to something else. Extract again."
    )


def _sound(layer: Any, n: int) -> bool:
    match layer:
        case {"file": str(file), "shape": [int(rows), int()], "dtype": "float16" | "float32" | "float64"}:
            # A file name without a path, so that no file outside the folder is opened.
            known = format_of(Path(file))
            return rows == n and file == os.path.basename(file) and known is not None and known.writes
    return False


class LayersContents(Contents):
    """The layers of a folder, with the ids of their rows and, if one input has several rows, their blocks."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path, name)
        self.manifest = read_manifest(Path(path))

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        layers = self.manifest["layers"].items()
        return {layer: Entry(tuple(declared["shape"]), np.dtype(declared["dtype"])) for layer, declared in layers}

    def open(self, key: str | None, ids: str | None) -> Rows:
        layers = list(self.entries)
        if ids not in (None, "ids"):
            raise InputError(
                f"{self.name} has nothing named {ids!r} to use as ids. Leave ids out to use the ids stored in {IDS}."
            )
        if key is None and len(layers) > 1:
            raise InputError(
                f"{self.name} holds {len(layers)} layers: {few(layers)}. Choose one, such as {self.name}:{layers[-1]}, "
                "or compare all of them with compare_layers (nearid layers)."
            )
        return super().open(key, None)

    def beside(self, wanted: str | None) -> tuple[list[str], Any]:
        held = {"blocks": self._blocks, "labels": self.labels}
        names = [name for name, values in held.items() if values is not None]
        return names, held[str(wanted)] if wanted in names else None

    def array(self, entry: str) -> np.ndarray:
        rows = self.rows(entry, None)
        return rows.read(0, rows.shape[0])

    def rows(self, entry: str, ids: Any) -> Rows:
        declared = self.manifest["layers"][entry]
        path = Path(self.path, declared["file"])
        if not path.exists():
            raise InputError(
                f"{self.name} has no file {path.name}, which should hold its layer {entry}. Copy it again, or extract "
                "again."
            )
        known = format_of(path)
        assert known is not None  # the manifest was checked
        if known.is_folder and not path.is_dir():
            raise InputError(f"{path} is not a {path.suffix[1:]} directory. Copy it again, or extract again.")
        if not known.is_folder:
            _refuse_pipe(path)
        state = None if known.is_folder else FileState(str(path))
        rows = known.open(str(path), path.name, None, None)
        if list(rows.shape) != declared["shape"]:
            raise InputError(f"{path} has shape {rows.shape}, not {declared['shape']}. Extract again.")
        rows.name, rows.file_state = self.label(entry), state
        rows.ids, rows.blocks = self._ids, self._blocks
        tell_inputs(rows, self.manifest)
        return rows

    @cached_property
    def _ids(self) -> np.ndarray:
        return _read_ids(Path(self.path), self.manifest["rows"])

    @cached_property
    def _blocks(self) -> np.ndarray | None:
        return _read_beside(Path(self.path), self.manifest, "blocks")

    @cached_property
    def labels(self) -> np.ndarray | None:
        """One label per row, if the extraction wrote labels."""
        return _read_beside(Path(self.path), self.manifest, "labels")


def name_rows(rows: Rows, path: Path) -> None:
    """Set ids and blocks of rows that were opened from one file of an extraction, from the files next to it."""
    if rows.ids is None and is_extraction(path.parent):
        manifest = read_manifest(path.parent)
        layers = manifest["layers"].values()
        if any((layer["file"], layer["shape"]) == (path.name, [*rows.shape]) for layer in layers):
            rows.ids = _read_ids(path.parent, manifest["rows"])
            rows.blocks = _read_beside(path.parent, manifest, "blocks")
            tell_inputs(rows, manifest)


def tell_inputs(rows: Rows, manifest: Mapping[str, Any]) -> None:
    """Set the hash and the preprocessing of the model inputs on the rows, as the manifest records them."""
    data = manifest.get("data", {})
    arrays = data.get("arrays")
    of_bytes = isinstance(arrays, dict) and {"uint8"} & {a.get("dtype") for a in arrays.values() if isinstance(a, dict)}
    rows.inputs_sha256 = data.get("sha256")
    match manifest:
        # Each model's own processor may differ, although the inputs are the same.
        case {"options": {"processor": True}}:
            pass
        case {"options": {"preprocess": dict(declared)}}:
            rows.preprocess = {name: list(v) if isinstance(v, tuple) else v for name, v in declared.items()}
            # By default, pixels stored as bytes are divided by 255.
            if declared.get("scale") is None and of_bytes:
                rows.preprocess["scale"] = 255.0


def _read_ids(folder: Path, n: int) -> np.ndarray:
    _refuse_pipe(folder / IDS)
    with damage_told(str(folder / IDS), ".npy file"):
        return row_ids(folder.name, read_npy(folder / IDS), n)


def _read_beside(folder: Path, manifest: Mapping[str, Any], name: str) -> np.ndarray | None:
    """Return blocks (the number of the input of each row) or labels; None if there are none."""
    file = manifest.get(name)
    if file is None:
        return None
    _refuse_pipe(folder / file)
    with damage_told(str(folder / file), ".npy file"):
        return row_ids(folder.name, read_npy(folder / file), manifest["rows"], name[:-1])


def _refuse_pipe(path: Path) -> None:
    """Raise an error for a pipe, which would block. Missing files raise an error when they are read."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a regular file. Copy it again, or extract again.")


LAYERS = Format((), LayersContents, is_folder=True, is_at=is_extraction)
