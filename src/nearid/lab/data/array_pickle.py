"""Lists and dicts of arrays in a pickle, read without running anything that the file names.

A pickle is a program that may call any function it names. This reader knows three names, those by which numpy writes
an array, and answers each with a stand-in of its own that only keeps what it is given; every other name is refused.
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
    """What stands for a numpy dtype: its code."""

    def __init__(self, code: object = "", *_: object) -> None:
        # Not the text of anything: that of lists in lists that are shared has no end.
        self.code = code if isinstance(code, str) else ""
        self.order = "|"

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]


class _Array:
    """What stands for a numpy array: its shape, type and bytes."""

    def __init__(self, *_: object) -> None:
        self.value = np.empty(0)

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, by_columns, data = state
        if not isinstance(kind, _Type) or not re.fullmatch("[biuf][1248]", kind.code) or not isinstance(data, bytes):
            raise InputError("it holds an array of something else than numbers")
        dtype = np.dtype((">" if kind.order == ">" else "<") + kind.code)
        if not all(type(size) is int and size >= 0 for size in shape):
            raise InputError("it holds an array whose shape is not of whole numbers")
        if math.prod(shape) * dtype.itemsize != len(data):
            raise InputError(f"an array of shape {shape} holds {len(data)} bytes")
        self.value = np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C")


class _NotCalled:
    """What stands for the class of arrays, which is named but never called."""


# Items in all, and lists or dicts in each other: far above what a set of films needs.
MOST = 1_000_000
DEPTH = 8

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
            return _plain(_Reader(io.BytesIO(path.read_bytes())).load(), iter(range(MOST)))
    except MemoryError:
        # Some lengths are believed before there is anything to read.
        raise InputError(f"{path.name} is not a whole pickle: it declares more than it holds. {AGAIN}") from None
    except InputError as error:
        if str(error).startswith(path.name):
            raise
        raise InputError(f"{path.name} is not read: {error}. Only arrays of numbers are expected in it.") from None


def _plain(held: Any, left: Iterator[int], depth: int = 0) -> Any:
    """What is held without the stand-ins; `left` counts down the items that may follow.

    A list may hold another many times, and so on: a few bytes of a pickle then stand for more than any memory.
    """
    if next(left, None) is None or depth > DEPTH:
        raise InputError(f"it holds more than {MOST} items, or lists in lists deeper than {DEPTH}")
    if isinstance(held, _Array):
        return held.value
    if isinstance(held, dict):
        if not all(isinstance(key, str) for key in held):
            raise InputError("it holds a dict whose keys are not strings")
        return {key: _plain(value, left, depth + 1) for key, value in held.items()}
    if isinstance(held, list | tuple):
        return [_plain(value, left, depth + 1) for value in held]
    if isinstance(held, str | bytes | int | float | bool | None):
        return held
    raise InputError("it holds something else than arrays")
