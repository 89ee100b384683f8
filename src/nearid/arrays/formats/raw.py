"""Rows that lie as plain numbers at an offset of a file."""

import io
import os
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from nearid.arrays.check import check_rows
from nearid.arrays.rows import Rows
from nearid.base.errors import InputError
from nearid.base.limits import readable


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
