"""The .npy format, and rows that lie as plain numbers at an offset of any file."""

import io
import math
import os
import warnings
from collections.abc import Iterable
from typing import IO, Any, Literal, NamedTuple

import numpy as np

from nearid.arrays.names import refuse_names
from nearid.arrays.reading import damage_told
from nearid.arrays.rows import Rows, check_rows
from nearid.base.errors import InputError
from nearid.base.limits import check_memory, readable


class RawRows(Rows):
    """Rows stored as plain numbers, read block by block.

    Parameters
    ----------
    path : str
        The file.
    offset : int
        Byte at which the numbers begin.
    stored : numpy.dtype
        How a number is stored, byte order included; uint16 for bfloat16.
    shape : tuple of int
        (n, d).
    name : str
        What people are shown.
    ids : array-like of shape (n,), optional
        Strings or integers that name the rows.
    order : {"C", "F"}
        Whether rows or columns are contiguous.
    bfloat16 : bool
        Whether the uint16 are the upper halves of float32.
    """

    def __init__(
        self,
        path: str,
        offset: int,
        stored: np.dtype[Any],
        shape: tuple[int, ...],
        *,
        name: str,
        ids: Any = None,
        order: Literal["C", "F"] = "C",
        bfloat16: bool = False,
    ) -> None:
        check_rows(name, shape, stored)
        super().__init__(name, shape, np.dtype(np.float32) if bfloat16 else stored, ids)
        self._path = path
        self._offset = offset
        self._stored = stored
        self._order: Literal["C", "F"] = order
        self._bfloat16 = bfloat16
        self._check_size()

    def _check_size(self) -> None:
        n, d = self.shape
        promised = n * d * self._stored.itemsize
        held = max(os.path.getsize(self._path) - self._offset, 0)
        if promised > held:
            raise InputError(
                f"{self.name} promises {n} x {d} numbers ({readable(promised)}) but holds {readable(held)} of them: "
                "it is truncated or its header is damaged. Write or copy it again."
            )

    def _read(self, start: int, stop: int) -> np.ndarray:
        n, d = self.shape
        # Plain reads, never a map: touching a page beyond the end of a file that shrank would kill the process.
        if self._order == "C":
            return self._pieces([start * d], (stop - start) * d).reshape(stop - start, d)
        return self._pieces(range(start, start + n * d, n), stop - start).T

    def _take(self, indices: np.ndarray) -> np.ndarray:
        d = self.shape[1]
        if self._order == "C":
            return self._pieces((indices * d).tolist(), d)
        return super()._take(indices)

    def _pieces(self, places: Iterable[int], count: int) -> np.ndarray:
        """`count` numbers from each of the places (in numbers from the first), of shape (places, count)."""
        places = list(places)
        block = np.empty((len(places), count), self._stored)
        with open(self._path, "rb", buffering=0) as file:
            for piece, place in zip(block, places, strict=True):
                file.seek(self._offset + place * self._stored.itemsize)
                if _fill(file, memoryview(piece.view(np.uint8))) < piece.nbytes:
                    raise self._cut_short()
        return self._decoded(block)

    def _cut_short(self) -> InputError:
        return InputError(f"{self.name} became shorter while it was read. Write or copy it again.")

    def _decoded(self, block: np.ndarray) -> np.ndarray:
        if not self._bfloat16:
            return block
        bits: np.ndarray = block.astype(np.uint32)
        bits <<= 16
        return bits.view(np.float32)


def _fill(file: io.RawIOBase, target: memoryview) -> int:
    """Read until the target is full or the file ends: the system delivers large pieces in parts."""
    filled = 0
    while filled < len(target) and (got := file.readinto(target[filled:])):
        filled += got
    return filled


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
