"""Small tensors in a safetensors file: written whole, read only after all that it declares has been checked."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.base.files import replacing
from nearid.base.limits import check_memory, readable
from nearid.moments import Floats

# What a header of a few tensors and some text may take.
HEADER_BYTES = 1 << 20


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
    """Refuse a file whose size does not fit what it should hold; asked before anything is read into memory."""
    size = os.path.getsize(path)
    if not least <= size <= most + HEADER_BYTES:
        raise InputError(
            f"{path} has {readable(size)}, but its tensors take {readable(least)}: it is truncated, or another file. "
            "Copy it again, or fit again."
        )
    check_memory(str(path), 2 * size, "Free some memory.")


def header(path: Path) -> dict[str, Any] | None:
    """What a safetensors file declares; None where it cannot be told."""
    # Opening a pipe would wait for somebody to write into it.
    if not path.is_file():
        return None
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read(min(int.from_bytes(file.read(8), "little"), HEADER_BYTES)))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def read_metadata(data: bytes, name: str) -> dict[str, str]:
    """The texts in a safetensors header."""
    with damage_told(name, "safetensors file"):
        found = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__", {})
        return {key: str(text) for key, text in found.items()}


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
    found: dict[str, int] = {}
    for name, axes in letters.items():
        shape = shapes[name]
        if not isinstance(shape, list | tuple) or len(shape) != len(axes):
            return None
        for axis, size in zip(axes, shape, strict=True):
            if type(size) is not int or size < 1 or found.setdefault(axis, size) != size:
                return None
    return found


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
