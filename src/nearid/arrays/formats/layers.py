"""Folders of extracted layers: a file for each layer, the ids of the rows beside them, and what made them."""

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
    """Layers of a model as rows of numbers, by name.

    Attributes
    ----------
    folder : Path or None
        Where they are; None in memory.
    provenance : dict
        What made them: model and data with their hashes, layers, pooling, options and versions.
    labels : ndarray of shape (n,) or None
        A label for each row, if the extraction wrote labels.
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
        """The layers of a folder that `extract` wrote.

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
    """Whether a folder holds extracted layers."""
    return os.path.isfile(folder / MANIFEST)


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a folder says of its layers and of what made them, checked as far as it is used."""
    path = folder / MANIFEST
    with damage_told(str(path), "extraction.json"):
        manifest = json.loads(path.read_text(encoding="utf-8"))
    match manifest:
        case {"format": int(version)} if version > FORMAT:
            raise InputError(f"{path} has format {version}, but this nearid knows {FORMAT} at most. Update nearid.")
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
            # A plain name, so that no file outside the folder is opened.
            known = format_of(Path(file))
            return rows == n and file == os.path.basename(file) and known is not None and known.writes
    return False


class LayersContents(Contents):
    """The layers of a folder, with the ids of their rows and, where several rows are of one input, their blocks."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path, name)
        self.manifest = read_manifest(Path(path))

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        layers = self.manifest["layers"].items()
        return {layer: Entry(tuple(told["shape"]), np.dtype(told["dtype"])) for layer, told in layers}

    def open(self, key: str | None, ids: str | None) -> Rows:
        layers = list(self.entries)
        if ids not in (None, "ids"):
            raise InputError(f"{self.name} has ids of its own in {IDS}, and nothing named {ids!r} to take others from.")
        if key is None and len(layers) > 1:
            raise InputError(
                f"{self.name} holds {len(layers)} layers: {few(layers)}. Name one as {self.name}:{layers[-1]}, or "
                "compare all with compare_layers (nearid layers)."
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
        told = self.manifest["layers"][entry]
        path = Path(self.path, told["file"])
        if not path.exists():
            raise InputError(
                f"{self.name} lacks {path.name}, the rows of its layer {entry}. Copy it again, or extract again."
            )
        known = format_of(path)
        assert known is not None  # the manifest was checked
        if known.is_folder and not path.is_dir():
            raise InputError(f"{path} is not a {path.suffix[1:]} directory. Copy it again, or extract again.")
        if not known.is_folder:
            _refuse_pipe(path)
        state = None if known.is_folder else FileState(str(path))
        rows = known.open(str(path), path.name, None, None)
        if list(rows.shape) != told["shape"]:
            raise InputError(f"{path} has shape {rows.shape}, not {told['shape']}. Extract again.")
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
        """A label for each row, if the extraction wrote labels."""
        return _read_beside(Path(self.path), self.manifest, "labels")


def name_rows(rows: Rows, path: Path) -> None:
    """Give rows that were opened from one file of an extraction the ids and blocks that lie beside it."""
    if rows.ids is None and is_extraction(path.parent):
        manifest = read_manifest(path.parent)
        layers = manifest["layers"].values()
        if any((layer["file"], layer["shape"]) == (path.name, [*rows.shape]) for layer in layers):
            rows.ids = _read_ids(path.parent, manifest["rows"])
            rows.blocks = _read_beside(path.parent, manifest, "blocks")
            tell_inputs(rows, manifest)


def tell_inputs(rows: Rows, manifest: Mapping[str, Any]) -> None:
    """Tell rows what the model was given for them: the hash of the inputs, and how they were preprocessed."""
    data = manifest.get("data", {})
    arrays = data.get("arrays")
    of_bytes = isinstance(arrays, dict) and {"uint8"} & {a.get("dtype") for a in arrays.values() if isinstance(a, dict)}
    rows.inputs_sha256 = data.get("sha256")
    match manifest:
        # What a model's own processor does is no difference between inputs.
        case {"options": {"processor": True}}:
            pass
        case {"options": {"preprocess": dict(told)}}:
            rows.preprocess = {name: list(v) if isinstance(v, tuple) else v for name, v in told.items()}
            # Unasked, pixels of bytes are divided by 255.
            if told.get("scale") is None and of_bytes:
                rows.preprocess["scale"] = 255.0


def _read_ids(folder: Path, n: int) -> np.ndarray:
    _refuse_pipe(folder / IDS)
    with damage_told(str(folder / IDS), ".npy file"):
        return row_ids(folder.name, read_npy(folder / IDS), n)


def _read_beside(folder: Path, manifest: Mapping[str, Any], name: str) -> np.ndarray | None:
    """Blocks, the input that each row is of, or labels; None where there are none."""
    file = manifest.get(name)
    if file is None:
        return None
    _refuse_pipe(folder / file)
    with damage_told(str(folder / file), ".npy file"):
        return row_ids(folder.name, read_npy(folder / file), manifest["rows"], name[:-1])


def _refuse_pipe(path: Path) -> None:
    """Refuse what would be waited for; what is missing is told where it is read."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a regular file. Copy it again, or extract again.")


LAYERS = Format((), LayersContents, is_folder=True, is_at=is_extraction)
