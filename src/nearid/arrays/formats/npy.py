"""The .npy format."""

import math
import os
import warnings
from typing import IO, Any, Literal, NamedTuple

import numpy as np

from nearid.arrays.choose import refuse_names
from nearid.arrays.damage import damage_told
from nearid.arrays.formats.raw import RawRows
from nearid.base.errors import InputError
from nearid.base.limits import check_memory, readable


class NpyHeader(NamedTuple):
    """What an .npy header declares."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Bytes of the numbers."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: IO[bytes]) -> NpyHeader:
    """Read an .npy header and leave `file` where the numbers begin."""
    version = np.lib.format.read_magic(file)
    # Version 3 differs from 2 only in the field names of structures, which are refused anyway.
    one = np.lib.format.read_array_header_1_0
    two = np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        # numpy warns that a file of Python 2 takes longer to read.
        warnings.simplefilter("ignore")
        return NpyHeader(*(one if version == (1, 0) else two)(file))


def refuse_objects(header: NpyHeader, name: str) -> None:
    """Refuse an array that only unpickling could load."""
    if header.dtype.hasobject:
        raise InputError(
            f"{name} holds Python objects, which could run code when loaded; nearid never unpickles. "
            "Save numbers instead, for example np.save(path, np.stack(list(x)).astype(np.float32))."
        )


def map_npy(path: str | os.PathLike[str]) -> np.ndarray:
    """An array of any shape as a read-only map of its file, which must hold what the header promises."""
    with open(path, "rb") as file:
        header = read_header(file)
        refuse_objects(header, os.path.basename(path))
        order: Literal["C", "F"] = "F" if header.fortran else "C"
        # numpy.load would take a file of this name for the archive or the pickle that it may be.
        return np.memmap(file, header.dtype, "r", file.tell(), header.shape, order)


def read_npy(path: str | os.PathLike[str]) -> np.ndarray:
    """An array of any shape in memory; its file must hold what the header promises."""
    name = os.path.basename(path)
    with open(path, "rb") as file:
        header = read_header(file)
        refuse_objects(header, name)
        promised, held = header.size, os.path.getsize(path) - file.tell()
        if promised > held or min(header.shape, default=0) < 0:
            raise InputError(
                f"{name} promises the shape {header.shape} ({readable(promised)}) but holds {readable(held)}: "
                "it is truncated or its header is damaged. Write or copy it again."
            )
        check_memory(name, promised, "Save a part of it.")
        file.seek(0)
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
    return array


def open_npy(path: str, name: str, key: str | None, ids: str | None) -> RawRows:
    """Open an .npy file, which is read block by block."""
    refuse_names(name, "an .npy file", key, ids)
    advice = "Write it again with np.save, or copy it again."
    with damage_told(name, ".npy file", advice), open(path, "rb") as file:
        header = read_header(file)
        offset = file.tell()
    refuse_objects(header, name)
    rows = RawRows(path, offset, header.dtype, header.shape, name=name, order="F" if header.fortran else "C")
    held = os.path.getsize(path) - offset
    if held > header.size:
        raise InputError(
            f"{name} promises {header.shape[0]} x {header.shape[1]} numbers ({readable(header.size)}) but holds "
            f"{readable(held)}: several arrays were saved into it, or its header is damaged. "
            "Save each array to a file of its own."
        )
    return rows
