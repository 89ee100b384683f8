"""A fitted unmixing on disk: a folder with model.safetensors (numbers) and model.json (what made them)."""

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nearid import __version__
from nearid.arrays import Rows
from nearid.arrays.reading import damage_told
from nearid.arrays.rows import digest
from nearid.base.errors import InputError
from nearid.base.files import check_parent, replacing, write_text
from nearid.base.jsonable import plain
from nearid.base.limits import check_memory, readable
from nearid.base.provenance import described
from nearid.ica.diagnostics import Diagnostics
from nearid.moments import Floats

FORMAT, KIND = 2, "ica"
ABOUT, NUMBERS = "model.json", "model.safetensors"
# A description holds some figures per component; a larger file is something else.
LARGEST_ABOUT = 64 << 20
# What a header of a few tensors and some text may take.
HEADER_BYTES = 1 << 20

# Sizes of each tensor: p columns, k components, r directions that exist, m passes.
SHAPES = {"mean": "p", "components": "kp", "mixing": "pk", "variances": "r", "kappa": "k", "gradients": "m"}


@dataclass(frozen=True)
class Model:
    """What is kept of a fit.

    Attributes
    ----------
    tensors : dict of str to ndarray
        The names of `SHAPES`, in float64.
    provenance : dict
        Options of the estimator, seed of the first rotation, and the rows as `describe` gives them.
    """

    tensors: dict[str, Floats]
    provenance: dict[str, Any]
    diagnostics: Diagnostics


def describe(given: object, rows: Rows) -> dict[str, Any]:
    """What is recorded of the rows of a fit, opened from what was given: a digest of all their numbers, too."""
    columns = None if rows.columns is None else list(rows.columns)
    # Ids change no component.
    return {**described(given, rows), "digest": digest(rows, with_ids=False), "columns": columns}


def write_model(folder: Path, model: Model) -> None:
    """Write both files, the description last: it carries the digest of the numbers, so a mixture is never read."""
    make_folder(folder)
    data = packed(model.tensors)
    about = {
        "format": FORMAT,
        "kind": KIND,
        "provenance": model.provenance,
        "tensors": {name: list(tensor.shape) for name, tensor in model.tensors.items()},
        "sha256": hashlib.sha256(data).hexdigest(),
        "diagnostics": plain(model.diagnostics),
    }
    # Nothing is replaced before all of it is known to be writable.
    text = json.dumps(about, indent=1, allow_nan=False) + "\n"
    write_bytes(folder / NUMBERS, data)
    write_text(folder / ABOUT, text)


def make_folder(folder: Path) -> None:
    """Make the folder for a model unless it is there."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, but a model is a folder; give another name.")
    if not folder.exists():
        if folder.is_symlink():
            raise InputError(f"{folder} is a link to {os.readlink(folder)}, which does not exist; give another name.")
        check_parent(folder)
        folder.mkdir()
    check_parent(folder / ABOUT)


def refuse_foreign(folder: Path, *others: Path) -> None:
    """Refuse a folder with files of these names that no fit has written: nothing may replace them.

    Parameters
    ----------
    others : Path
        Files that lie beside a model; without one they are of somebody else.
    """
    about, numbers = folder / ABOUT, folder / NUMBERS
    known = {about: _describes_model(about), numbers: _holds_model(numbers)}
    there = [path for path in (about, numbers, *others) if path.exists()]
    strange = [path for path in there if path in known and (known[path] is False or not path.is_file())]
    if not strange and not any(known.values()):
        strange = there
    if strange:
        raise InputError(
            f"{folder} holds {strange[0].name}, which nearid unmix did not write and would replace; write to another "
            "folder, or move this file."
        )


def _describes_model(path: Path) -> bool | None:
    """Whether a file is the description of a model; None where this cannot be known."""
    if not path.is_file():
        return None
    if path.stat().st_size > LARGEST_ABOUT:
        return False
    try:
        about = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return isinstance(about, dict) and about.get("kind") == KIND


def _holds_model(path: Path) -> bool | None:
    """Whether a file holds the numbers of a model; None where this cannot be known."""
    declared = header(path)
    return None if declared is None else declared.keys() - {"__metadata__"} == SHAPES.keys()


def read_model(folder: Path) -> Model:
    """Read a model; every size is checked before memory is taken, and the numbers against their digest."""
    about = _about(folder)
    shapes = about["tensors"]
    known = sizes(shapes, SHAPES)
    if known is None or not known["k"] <= known["r"] <= known["p"]:
        raise InputError(f"{folder / ABOUT} declares tensors that do not fit together: {str(shapes)[:200]}. Fit again.")
    path = folder / NUMBERS
    if not path.is_file():
        raise InputError(f"{folder} holds {ABOUT} but no {NUMBERS}. Copy the whole folder.")
    size = sum(8 * math.prod(shape) for shape in shapes.values())
    check_size(path, size, size)
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != about["sha256"]:
        raise InputError(
            f"{path} is not the file that {ABOUT} describes (its sha256 differs): it is damaged, or from another fit. "
            "Copy the whole folder again, or fit again."
        )
    tensors = read_tensors(data, str(path), SHAPES)
    if any(list(tensor.shape) != shapes[name] for name, tensor in tensors.items()):
        raise InputError(f"{path} holds tensors of other shapes than {ABOUT} declares. Fit again.")
    with describing_ica(folder):
        diagnostics = Diagnostics.from_dict({**about["diagnostics"], "components": known["k"]})
    return Model(tensors, about["provenance"], diagnostics)


@contextmanager
def describing_ica(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Refuse a description whose parts are not those of an ICA."""
    try:
        yield
    except (TypeError, ValueError, KeyError) as error:
        raise InputError(f"{folder} has a {ABOUT} that does not describe an ICA: {error}. Fit again.") from None


def _about(folder: Path) -> dict[str, Any]:
    path = folder / ABOUT
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise InputError(f"{folder} {what}, but a model is a folder, as `nearid unmix X -o FOLDER` writes it.")
    if not path.is_file():
        raise InputError(f"{folder} holds no finished model: there is no {ABOUT} in it. Run `nearid unmix` to its end.")
    if path.stat().st_size > LARGEST_ABOUT:
        raise InputError(f"{path} is too large for the description of a model. Copy it again, or fit again.")
    try:
        about: Any = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a whole JSON file: {error}. Copy it again, or fit again.") from None
    version = about.get("format") if isinstance(about, dict) else None
    if type(version) is not int or about.get("kind") != KIND:
        raise InputError(f"{path} does not describe a model. Give a folder that `nearid unmix` wrote.")
    if version not in (1, FORMAT):
        raise InputError(
            f"{path} has format {version}, but nearid {__version__} reads formats 1 and {FORMAT}. "
            "Use the nearid that wrote it or a newer one, or fit again."
        )
    if version == 1:
        with describing_ica(folder):
            about = _from_first_format(about)
    made = about["provenance"] if isinstance(about.get("provenance"), dict) else {}
    [source] = made["inputs"] if isinstance(made.get("inputs"), list) and len(made["inputs"]) == 1 else [None]
    parts = {**about, "options": made.get("options"), "seed": made.get("seed"), "input": source}
    kinds = {"options": dict, "seed": int, "input": dict, "tensors": dict, "sha256": str, "diagnostics": dict}
    for part, kind in kinds.items():
        if type(parts.get(part)) is not kind:
            raise InputError(f"{path} lacks a proper {part!r}: it is damaged. Copy it again, or fit again.")
    return dict(about)


def _from_first_format(about: dict[str, Any]) -> dict[str, Any]:
    """Format 1 had the parts of the provenance side by side, and alerts were cautions of a kind and a text."""
    made = {"nearid": about.get("nearid"), "options": about.get("options"), "inputs": [about.get("input")]}
    diagnostics = dict(about.get("diagnostics", {}))
    cautions = diagnostics.pop("cautions", [])
    diagnostics["alerts"] = [{"code": caution["kind"], "message": caution["text"]} for caution in cautions]
    return {**about, "provenance": {**made, "seed": about.get("seed")}, "diagnostics": diagnostics}


def _refuse_constant(value: str) -> None:
    raise ValueError(f"{value} is no JSON number")


def packed(tensors: Mapping[str, Floats], metadata: dict[str, str] | None = None) -> bytes:
    """Float64 tensors as the bytes of a safetensors file."""
    from safetensors.numpy import save

    data: bytes = save({k: np.ascontiguousarray(v, np.float64) for k, v in tensors.items()}, metadata)
    return data


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all."""
    with replacing(path) as file:
        file.write(data)


def check_size(path: Path, least: int, most: int) -> None:
    """Refuse a file whose size does not fit what it should hold; called before anything is read into memory."""
    size = os.path.getsize(path)
    if not least <= size <= most + HEADER_BYTES:
        raise InputError(
            f"{path} has {readable(size)}, but its tensors take {readable(least)}: it is truncated, or another file. "
            "Copy it again, or fit again."
        )
    check_memory(str(path), 2 * size, "Free some memory.")


def header(path: Path) -> dict[str, Any] | None:
    """What a safetensors file declares; None where this cannot be known."""
    # Opening a pipe would wait for somebody to write into it.
    if not path.is_file():
        return None
    try:
        with open(path, "rb") as file:
            declared = json.loads(file.read(min(int.from_bytes(file.read(8), "little"), HEADER_BYTES)))
    except (OSError, ValueError, RecursionError):
        return None
    return declared if isinstance(declared, dict) else None


def read_metadata(data: bytes, name: str) -> dict[str, str]:
    """The texts in a safetensors header."""
    with damage_told(name, "safetensors file"):
        texts = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__", {})
        return {key: str(text) for key, text in texts.items()}


def sizes(shapes: Mapping[str, Any], letters: Mapping[str, str]) -> dict[str, int] | None:
    """The size that each letter stands for, or None where shapes do not fit together.

    Parameters
    ----------
    shapes : mapping of str to sequence of int
        As declared by a file: anything may stand there.
    letters : mapping of str to str
        A letter for each axis, such as {"mean": "p", "mixing": "pk"}; the same letter, the same size.
    """
    if shapes.keys() != letters.keys():
        return None
    known: dict[str, int] = {}
    for name, axes in letters.items():
        shape = shapes[name]
        if not isinstance(shape, list | tuple) or len(shape) != len(axes):
            return None
        for axis, size in zip(axes, shape, strict=True):
            if type(size) is not int or size < 1 or known.setdefault(axis, size) != size:
                return None
    return known


def read_tensors(data: bytes, name: str, letters: Mapping[str, str]) -> dict[str, Floats]:
    """Float64 tensors of these names, whose shapes fit together, all finite."""
    from safetensors.numpy import load

    with damage_told(name, "safetensors file"):
        tensors: dict[str, Floats] = load(data)
    shapes = {key: tensor.shape for key, tensor in tensors.items()}
    if sizes(shapes, letters) is None:
        raise InputError(f"{name} holds tensors that do not fit together: {dict(sorted(shapes.items()))}. Fit again.")
    for key, tensor in tensors.items():
        if tensor.dtype != np.float64:
            raise InputError(f"{name} holds {key} as {tensor.dtype}, but float64 is expected. Fit again.")
        if not np.isfinite(tensor).all():
            raise InputError(f"{name} holds NaN or infinity in {key}. Fit again.")
    return tensors
