"""A fitted unmixing on disk: a folder with model.safetensors (numbers) and model.json (description)."""

import hashlib
import json
import math
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nearid import __version__
from nearid.arrays import Rows
from nearid.arrays.names import few
from nearid.arrays.reading import damage_told
from nearid.arrays.rows import BLOCK, digest
from nearid.base.errors import InputError, near_names
from nearid.base.files import check_parent, replacing, write_text
from nearid.base.jsonable import plain
from nearid.base.limits import check_memory, readable
from nearid.base.provenance import described
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL
from nearid.ica.diagnostics import Diagnostics
from nearid.moments import Floats

FORMAT, KIND = 2, "ica"
# The kind of a model of `nearid deconfound`, which is a folder with the same files.
CLEANING = "cleaning"
ABOUT, NUMBERS, CHECKPOINT = "model.json", "model.safetensors", "checkpoint.safetensors"
# A description holds a few numbers per component. A larger file is not a description.
LARGEST_ABOUT = 64 << 20
# Maximum size of a header with a few tensors and some text.
HEADER_BYTES = 1 << 20

# Sizes of each tensor: p columns, k components, r directions that exist, m passes.
SHAPES = {"mean": "p", "components": "kp", "mixing": "pk", "variances": "r", "kappa": "k", "gradients": "m"}


@dataclass(frozen=True)
class Model:
    """The parts of a fit that are saved.

    Attributes
    ----------
    tensors : dict of str to ndarray
        Arrays in float64, with the names of `SHAPES`.
    provenance : dict
        Options of the estimator, seed of the first rotation, and the rows as described by `describe`.
    """

    tensors: dict[str, Floats]
    provenance: dict[str, Any]
    diagnostics: Diagnostics


def describe(given: object, rows: Rows, engine: Engine = LOCAL) -> dict[str, Any]:
    """Return the description of the rows of a fit for the provenance, including a hash of all numbers."""
    columns = None if rows.columns is None else list(rows.columns)
    return {**described(given, rows), "digest": digest_on(engine, rows), "columns": columns}


def digest_on(engine: Engine, rows: Rows) -> str:
    """Return a hash (16 hex digits) of the shape, the dtype and all numbers; ids do not change the components.

    Of more rows than are read at once it is the hash of the hashes of the parts, so that the processes of the engine
    read them.
    """
    n, width = rows.shape
    step = max(1, BLOCK // (width * rows.dtype.itemsize))
    if n <= step:
        return digest(rows, with_ids=False)
    hashed = hashlib.sha256(f"{rows.shape} {rows.dtype.name} in parts of {step}".encode())
    for part in engine.map(_part_digest, [(start, min(start + step, n)) for start in range(0, n, step)], rows):
        hashed.update(part)
    return hashed.hexdigest()[:16]


def _part_digest(block: tuple[int, int], rows: Rows) -> bytes:
    # One byte order, so that all machines agree.
    stored = rows.dtype.newbyteorder("<")
    return hashlib.sha256(np.ascontiguousarray(rows.read(*block), dtype=stored).data).digest()


def write_model(folder: Path, model: Model) -> None:
    """Write both files, the description last. It contains the hash of the numbers, so files of two fits never match."""
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
    # No file is replaced before it is certain that both can be written.
    text = json.dumps(about, indent=1, allow_nan=False) + "\n"
    write_bytes(folder / NUMBERS, data)
    write_text(folder / ABOUT, text)


def make_folder(folder: Path) -> None:
    """Create the folder for a model if it does not exist."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, but a model is a folder. Give another name.")
    if not folder.exists():
        if folder.is_symlink():
            raise InputError(f"{folder} is a link to {os.readlink(folder)}, which does not exist. Give another name.")
        check_parent(folder)
        folder.mkdir()
    check_parent(folder / ABOUT)


def refuse_foreign(folder: Path, *others: Path) -> None:
    """Raise an error if a folder holds files of these names that no fit has written, so that they are not replaced.

    Parameters
    ----------
    others : Path
        Files that may lie next to a model. Without a model, they are not from nearid.
    """
    about, numbers = folder / ABOUT, folder / NUMBERS
    known = {about: _describes_model(about), numbers: _holds_model(numbers)}
    there = [path for path in (about, numbers, *others) if path.exists()]
    strange = [path for path in there if path in known and (known[path] is False or not path.is_file())]
    if not strange and not any(known.values()):
        strange = there
    if strange:
        raise InputError(
            f"{folder} holds a file {strange[0].name} that nearid unmix did not write and would replace. Write to "
            "another folder, or move this file."
        )


def _describes_model(path: Path) -> bool | None:
    """Return whether a file is the description of a model; None if this cannot be determined."""
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
    """Return whether a file holds the numbers of a model; None if this cannot be determined."""
    declared = header(path)
    return None if declared is None else declared.keys() - {"__metadata__"} == SHAPES.keys()


def read_model(folder: Path) -> Model:
    """Return a model from a folder. Sizes are checked before memory is allocated, and numbers against their hash."""
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
        raise InputError(f"The shapes of the tensors in {path} are not those that {ABOUT} declares. Fit again.")
    with describing_ica(folder):
        diagnostics = Diagnostics.from_dict({**about["diagnostics"], "components": known["k"]})
    return Model(tensors, about["provenance"], diagnostics)


@contextmanager
def describing_ica(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Raise an error if a description does not describe an ICA."""
    try:
        yield
    except (TypeError, ValueError, KeyError) as error:
        raise InputError(f"{folder} has a {ABOUT} that does not describe an ICA: {error}. Fit again.") from None


def check_model(folder: Path) -> None:
    """Raise an error if a place is not the model of an unmixing; the numbers are not read."""
    _about(folder)


def _about(folder: Path) -> dict[str, Any]:
    path = folder / ABOUT
    if not path.is_file():
        raise _no_model(folder)
    if path.stat().st_size > LARGEST_ABOUT:
        raise InputError(f"{path} is too large for the description of a model. Copy it again, or fit again.")
    try:
        about: Any = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a whole JSON file: {error}. Copy it again, or fit again.") from None
    version = about.get("format") if isinstance(about, dict) else None
    if version is not None and about.get("kind") == CLEANING:
        raise InputError(
            f"{folder} is a model of `nearid deconfound -o`, which cleans rows, but a model of `nearid unmix` is "
            f"expected. To clean other rows: nearid apply {shlex.quote(os.fspath(folder))} X -o OUT."
        )
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
            raise InputError(f"The entry {part!r} of {path} is missing or damaged. Copy it again, or fit again.")
    return dict(about)


def _no_model(folder: Path) -> InputError:
    """Return the error for a place without a model, which names the models near it."""
    written = "`nearid unmix X -o FOLDER` and `nearid deconfound X -o TABLE` write models."
    if folder.is_dir():
        if (folder / CHECKPOINT).is_file():
            return InputError(f"The fit in {folder} is not finished: run the same `nearid unmix` again to continue it.")
        inside = [str(folder / name) for name in _models_in(folder)]
        hint = f"Models in it: {few(inside)}." if inside else written
        return InputError(f"The folder {folder} is not a model: it has no file {ABOUT}. {hint}")
    if folder.exists():
        what = f"{folder} is a file, but a model is a folder."
    elif not folder.parent.is_dir():
        return InputError(f"There is no model {folder}: the folder {folder.parent} does not exist.")
    else:
        what = f"There is no folder {folder}, but a model is expected."
    beside = _models_in(folder.parent)
    near = near_names(folder.name, beside) or [name for name in beside if name.startswith(folder.stem)]
    if near:
        return InputError(f"{what} Did you mean {' or '.join(str(folder.parent / name) for name in near)}?")
    return InputError(f"{what} {f'Models beside it: {few(beside)}.' if beside else written}")


def _models_in(folder: Path) -> list[str]:
    """Return the names of the models in a folder."""
    try:
        return sorted(entry.name for entry in folder.iterdir() if (entry / ABOUT).is_file())
    except OSError:
        return []


def _from_first_format(about: dict[str, Any]) -> dict[str, Any]:
    """Convert a description of format 1, which had another form of the provenance and of alerts."""
    made = {"nearid": about.get("nearid"), "options": about.get("options"), "inputs": [about.get("input")]}
    diagnostics = dict(about.get("diagnostics", {}))
    cautions = diagnostics.pop("cautions", [])
    diagnostics["alerts"] = [{"code": caution["kind"], "message": caution["text"]} for caution in cautions]
    return {**about, "provenance": {**made, "seed": about.get("seed")}, "diagnostics": diagnostics}


def _refuse_constant(value: str) -> None:
    raise ValueError(f"{value} is not a JSON number")


def packed(tensors: Mapping[str, Floats], metadata: dict[str, str] | None = None) -> bytes:
    """Return float64 tensors as the bytes of a safetensors file."""
    from safetensors.numpy import save

    data: bytes = save({k: np.ascontiguousarray(v, np.float64) for k, v in tensors.items()}, metadata)
    return data


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file completely or not at all."""
    with replacing(path) as file:
        file.write(data)


def check_size(path: Path, least: int, most: int) -> None:
    """Raise an error if the size of a file does not match its declared tensors, before it is read into memory."""
    size = os.path.getsize(path)
    if not least <= size <= most + HEADER_BYTES:
        raise InputError(
            f"{path} has {readable(size)}, but its tensors need {readable(least)}: it is truncated, or not the right "
            "file. Copy it again, or fit again."
        )
    check_memory(str(path), 2 * size, "Free some memory.")


def header(path: Path) -> dict[str, Any] | None:
    """Return the header of a safetensors file; None if it cannot be read."""
    # Opening a pipe would wait until another process writes into it.
    if not path.is_file():
        return None
    try:
        with open(path, "rb") as file:
            declared = json.loads(file.read(min(int.from_bytes(file.read(8), "little"), HEADER_BYTES)))
    except (OSError, ValueError, RecursionError):
        return None
    return declared if isinstance(declared, dict) else None


def read_metadata(data: bytes, name: str) -> dict[str, str]:
    """Return the metadata in a safetensors header."""
    with damage_told(name, "safetensors file"):
        texts = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__", {})
        return {key: str(text) for key, text in texts.items()}


def sizes(shapes: Mapping[str, Any], letters: Mapping[str, str]) -> dict[str, int] | None:
    """Return the size of each letter, or None if the shapes do not fit together.

    Parameters
    ----------
    shapes : mapping of str to sequence of int
        Shapes as a file declares them, which may be invalid.
    letters : mapping of str to str
        A letter for each axis, such as {"mean": "p", "mixing": "pk"}. Equal letters mean equal sizes.
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
    """Return the float64 tensors of these names, after checking that their shapes match and all numbers are finite."""
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
