"""Lists and dicts of arrays in a pickle, read without running anything that the file names.

A pickle is a program that may call any function it names. This reader knows three names, those by which numpy writes
an array, and answers each with a stand-in of its own that only keeps what it is given; every other name is refused.
"""

from __future__ import annotations

import io
import math
import pickle
import re
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from nearid.arrays.damage import damage_told
from nearid.arrays.memory import check_memory
from nearid.data.base import AGAIN
from nearid.errors import InputError


class _Type:
    """What stands for a numpy dtype: its code."""

    def __init__(self, code: object = "", *_: object) -> None:
        self.code = str(code)
        self.order = "|"

    def __setstate__(self, state: Any) -> None:
        self.order = str(state[1])


class _Array:
    """What stands for a numpy array: its shape, type and bytes."""

    def __init__(self, *_: object) -> None:
        self.value = np.empty(0)

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, by_columns, data = state
        if not isinstance(kind, _Type) or not re.fullmatch("[biuf][1248]", kind.code) or not isinstance(data, bytes):
            raise InputError("it holds an array of something else than numbers")
        dtype = np.dtype((">" if kind.order == ">" else "<") + kind.code)
        if not all(type(size) is int and size >= 0 for size in shape) or math.prod(shape) * dtype.itemsize != len(data):
            raise InputError(f"an array of shape {shape} holds {len(data)} bytes")
        self.value = np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C")


class _NotCalled:
    """What stands for the class of arrays, which is named but never called."""


_KNOWN = {"_reconstruct": _Array, "ndarray": _NotCalled, "dtype": _Type}
_HOMES = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray")


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module in _HOMES and name in _KNOWN:
            return _KNOWN[name]
        raise InputError(f"it asks for {module}.{name}, which could run code")

    def persistent_load(self, pid: object) -> NoReturn:
        raise InputError("it refers to something outside of it")


def read_arrays(path: Path) -> Any:
    """The dicts, lists, numbers, strings and numpy arrays of a pickle; anything else in it is refused."""
    # The bytes, and a copy of them in the arrays.
    check_memory(path.name, 2 * path.stat().st_size, "Close other programs.")
    try:
        with damage_told(path.name, "pickle", AGAIN):
            # From memory, so that a length that is a lie is no reason to allocate it.
            return _plain(_Reader(io.BytesIO(path.read_bytes())).load())
    except MemoryError:
        # Some lengths are believed before there is anything to read.
        raise InputError(f"{path.name} is not a whole pickle: it declares more than it holds. {AGAIN}") from None
    except InputError as error:
        if str(error).startswith(path.name):
            raise
        raise InputError(f"{path.name} is not read: {error}. Only arrays of numbers are expected in it.") from None


def _plain(held: Any) -> Any:
    if isinstance(held, _Array):
        return held.value
    if isinstance(held, dict):
        return {str(key): _plain(value) for key, value in held.items()}
    if isinstance(held, list | tuple):
        return [_plain(value) for value in held]
    if isinstance(held, str | bytes | int | float | bool | None):
        return held
    raise InputError("it holds something else than arrays")
