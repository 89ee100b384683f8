"""Rows that lie as plain numbers at an offset of a file."""

import os
from typing import Any, Literal

import numpy as np

from nearid.arrays.check import check_rows
from nearid.arrays.memory import readable
from nearid.arrays.rows import Rows
from nearid.errors import InputError


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

    def _map(self) -> np.ndarray:
        # Touching a mapped page beyond the end of a file that shrank would kill the process.
        self._check_size()
        return np.memmap(self._path, self._stored, "r", self._offset, self.shape, self._order)

    def _read(self, start: int, stop: int) -> np.ndarray:
        if self._order == "F":
            return self._decoded(np.array(self._map()[start:stop]))
        # Plain reads need no lock and, unlike mapped pages, do not count as this process's memory.
        d = self.shape[1]
        count = (stop - start) * d
        at = self._offset + start * d * self._stored.itemsize
        block = np.fromfile(self._path, self._stored, count, offset=at)
        if len(block) < count:
            raise self._cut_short()
        return self._decoded(block.reshape(stop - start, d))

    def _take(self, indices: np.ndarray) -> np.ndarray:
        if self._order == "F":
            return self._decoded(np.asarray(self._map()[indices]))
        # Row by row: a map would bring in, and count, sixteen pages around each row.
        block = np.empty((len(indices), self.shape[1]), self._stored)
        size = block.strides[0]
        with open(self._path, "rb", buffering=0) as file:
            for row, index in zip(block, indices.tolist(), strict=True):
                file.seek(self._offset + index * size)
                if file.readinto(row) < size:
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
