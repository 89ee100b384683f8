"""One-dimensional arrays, such as the biases beside the weights of a layer."""

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.choose import whole_name
from nearid.arrays.damage import damage_told
from nearid.arrays.formats.npy import read_npy
from nearid.arrays.formats.npz import load_member, members_of
from nearid.arrays.formats.safetensors import find_vector
from nearid.arrays.formats.torch import CHECKPOINTS, entries_of, load_saved
from nearid.arrays.held import is_a
from nearid.arrays.open import file_suffix, split_key
from nearid.arrays.paths import reached
from nearid.base.errors import InputError


def read_vector(source: Any, name: str) -> np.ndarray:
    """Finite numbers in one dimension, from an array, a tensor, or a file as path or path:entry."""
    found = source
    if isinstance(source, str | os.PathLike):
        path, key = split_key(source)
        found = vector_in(path, key)
        if found is None:
            raise InputError(f"{name}: there is no vector {source}. Give it as .npy, or as FILE:ENTRY of a checkpoint.")
    array = _plain(found)
    if array.ndim != 1 or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise InputError(f"{name} has shape {array.shape} and dtype {array.dtype}; a vector of numbers is expected.")
    return array.astype(np.float64)


def vector_in(path: Path, key: str | None) -> np.ndarray | None:
    """A vector of a file by name; None where the file holds no such entry, or is of a kind without names."""
    if not os.path.isfile(path):
        return None
    with reached(path):
        return _vector_in(path, key)


def _vector_in(path: Path, key: str | None) -> np.ndarray | None:
    suffix = file_suffix(path)
    if suffix == ".npy" and key is None:
        with damage_told(path.name, ".npy file"):
            return read_npy(path)
    if key is None:
        return None
    if suffix == ".safetensors":
        return find_vector(str(path), path.name, key)
    if suffix in CHECKPOINTS:
        entries = entries_of(load_saved(str(path), path.name), path.name)
        held = entries.get(whole_name(key, entries))
        return None if held is None else _plain(held)
    if suffix == ".npz":
        with damage_told(path.name, ".npz archive"), zipfile.ZipFile(path) as archive:
            members = members_of(archive, path.name)
            return load_member(archive, members[key], f"{path.name}:{key}") if key in members else None
    return None


def _plain(held: Any) -> np.ndarray:
    return np.asarray(held.detach().double().numpy(force=True) if is_a(held, "torch", "Tensor") else held)
