"""Lists and dicts of arrays in a pickle, read without running anything that the file names.

A pickle is a program that may call any function it names. This reader accepts only the three names that numpy uses to
write an array. It replaces each by a harmless class that stores its arguments, and refuses every other name.
"""

import io
import math
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.base.limits import check_memory
from nearid.lab.data.base import AGAIN


class _Type:
    """Replacement of a numpy dtype: keeps its code."""

    def __init__(self, code: object = "", *_: object) -> None:
        # Never format the argument: the text of lists that contain each other has no end.
        self.code = code if isinstance(code, str) else ""
        self.order = "|"

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]


class _Array:
    """Replacement of a numpy array: keeps its shape, type and bytes."""

    def __init__(self, *_: object) -> None:
        self.value = np.empty(0)

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, by_columns, data = state
        if not isinstance(kind, _Type) or not re.fullmatch("[biuf][1248]", kind.code) or not isinstance(data, bytes):
            raise InputError("it contains an array that does not hold numbers")
        dtype = np.dtype((">" if kind.order == ">" else "<") + kind.code)
        if not all(type(size) is int and size >= 0 for size in shape):
            raise InputError("it contains an array whose shape is not made of whole numbers")
        if math.prod(shape) * dtype.itemsize != len(data):
            raise InputError(f"an array of shape {shape} holds {len(data)} bytes")
        self.value = np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C")


class _NotCalled:
    """Replacement of the class of arrays, which a pickle names but never calls."""


# Largest number of items, and of lists or dicts nested in each other. A set of films needs far fewer.
MOST = 1_000_000
DEPTH = 8

_KNOWN = {"_reconstruct": _Array, "ndarray": _NotCalled, "dtype": _Type}
_HOMES = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray")


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module in _HOMES and name in _KNOWN:
            return _KNOWN[name]
        raise InputError(f"it refers to {module}.{name}, which could run code")

    def persistent_load(self, pid: object) -> NoReturn:
        raise InputError("it refers to an object outside of the file")


def read_arrays(path: Path) -> Any:
    """Return the dicts, lists, numbers, strings and numpy arrays of a pickle. Anything else is refused."""
    # The bytes of the file, and their copy in the arrays.
    check_memory(path.name, 2 * path.stat().st_size, "Close other programs.")
    try:
        with damage_told(path.name, "pickle", AGAIN):
            # Read from memory: a wrong length in the file then does not allocate memory.
            return _plain(_Reader(io.BytesIO(path.read_bytes())).load(), iter(range(MOST)))
    except MemoryError:
        # Some lengths allocate memory before anything is read.
        raise InputError(
            f"{path.name} is not a whole pickle: it declares more bytes than it contains. {AGAIN}"
        ) from None
    except InputError as error:
        if str(error).startswith(path.name):
            raise
        raise InputError(
            f"{path.name} cannot be read: {error}. Only arrays of numbers are expected in this file."
        ) from None


def _plain(held: Any, left: Iterator[int], depth: int = 0) -> Any:
    """Return the content with numpy arrays in place of the replacements; `left` counts down the allowed items.

    A list may refer to another list many times, and so on. A few bytes of a pickle can then expand to more than any
    memory.
    """
    if next(left, None) is None or depth > DEPTH:
        raise InputError(f"it contains more than {MOST} items, or more than {DEPTH} nested lists")
    if isinstance(held, _Array):
        return held.value
    if isinstance(held, dict):
        if not all(isinstance(key, str) for key in held):
            raise InputError("it contains a dict whose keys are not strings")
        return {key: _plain(value, left, depth + 1) for key, value in held.items()}
    if isinstance(held, list | tuple):
        return [_plain(value, left, depth + 1) for value in held]
    if isinstance(held, str | bytes | int | float | bool | None):
        return held
    raise InputError("it contains something other than arrays")
