"""Arrays of MATLAB files; the declared sizes are checked before anything is loaded."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.base.limits import check_memory
from nearid.lab.data.base import AGAIN

# Numeric classes and their bytes per number. Other classes (cells, objects, functions) are not read.
WIDTHS = {"double": 8, "single": 4, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "uint32": 4, "int32": 4}


def mat_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Shape of each array of numbers in a MATLAB file."""
    return {name: shape for name, (shape, _) in _declared(path).items()}


def _declared(path: Path) -> dict[str, tuple[tuple[int, ...], int]]:
    """Shape and bytes per number of each array of numbers."""
    from scipy.io import whosmat

    with damage_told(path.name, "MATLAB file", AGAIN):
        return {name: (tuple(shape), WIDTHS[kind]) for name, shape, kind in whosmat(str(path)) if kind in WIDTHS}


def load_mat(path: Path, wanted: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Arrays of a MATLAB file by name.

    Parameters
    ----------
    wanted : mapping of name to shape
        Arrays to load and their expected shapes; -1 means any size.
    """
    from scipy.io import loadmat

    declared = _declared(path)
    total = 0
    for name, shape in wanted.items():
        if name not in declared:
            raise InputError(f"{path.name} has no array {name!r}. It holds {', '.join(declared) or 'no numbers'}.")
        stored, width = declared[name]
        if len(stored) != len(shape) or any(w not in (-1, f) for w, f in zip(shape, stored, strict=True)):
            raise InputError(f"{path.name} has {name!r} of shape {stored}, but {shape} is expected (-1: any).")
        total += math.prod(stored) * width
    check_memory(path.name, total, "Close other programs.")
    with damage_told(path.name, "MATLAB file", AGAIN):
        held = loadmat(str(path), variable_names=list(wanted))
        return {name: np.asarray(held[name]) for name in wanted}
