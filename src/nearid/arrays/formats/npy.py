"""The numpy formats .npy and .npz, and arrays of plain numbers at an offset in any file."""

from __future__ import annotations

import io
import math
import os
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import IO, Any, NamedTuple

import numpy as np

from nearid.arrays.formats.registry import Contents, Format
from nearid.arrays.names import Entry
from nearid.arrays.reading import damage_told
from nearid.arrays.rows import Rows
from nearid.arrays.storage import opened, read_into, state_of
from nearid.base.errors import InputError
from nearid.base.limits import check_memory, readable


class RawArray:
    """An array of plain numbers in a file. Slices are read when they are taken.

    Parameters
    ----------
    path : str
        A path, or an address.
    offset : int
        Position of the first number in bytes.
    stored : numpy.dtype
        Type of a stored number, including the byte order. It is uint16 for bfloat16.
    shape : tuple of int
    name : str
        Name in messages.
    fortran : bool
        Whether the first axis is contiguous rather than the last.
    bfloat16 : bool
        Whether the numbers are bfloat16, that is, uint16 with the upper halves of float32.
    """

    def __init__(
        self,
        path: str,
        offset: int,
        stored: np.dtype[Any],
        shape: tuple[int, ...],
        *,
        name: str,
        fortran: bool = False,
        bfloat16: bool = False,
    ) -> None:
        self.name, self.shape = name, shape
        self.dtype = np.dtype(np.float32) if bfloat16 else stored
        self._path, self._offset, self._stored = path, offset, stored
        self._fortran, self._bfloat16 = fortran, bfloat16

    def checked(self) -> RawArray:
        """Return the array, or raise an error if the file is shorter than the shape requires."""
        promised = math.prod(self.shape) * self._stored.itemsize
        held = max(state_of(self._path).size - self._offset, 0)
        if promised > held or min(self.shape, default=0) < 0:
            raise InputError(
                f"{self.name} declares the shape {self.shape} ({readable(promised)}) but holds {readable(held)}: "
                "it is truncated or its header is damaged. Write or copy it again."
            )
        return self

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: slice) -> np.ndarray:
        return self.read(*part.indices(len(self))[:2])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        check_memory(self.name, math.prod(self.shape) * self.dtype.itemsize, "Save a part of it.")
        array = self.read(0, len(self)) if self.shape else self._pieces([0], 1).reshape(())
        return array.astype(dtype or self.dtype, copy=False)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return entries `start` to `stop` along the first axis."""
        n, rest, count = len(self), self.shape[1:], stop - start
        each = math.prod(rest)
        # Plain reads, not a memory map: if the file became shorter, a memory map would kill the process.
        if not self._fortran:
            return self._pieces([start * each], count * each).reshape(count, *rest)
        return self._pieces(range(start, start + n * each, n), count).T.reshape(count, *rest, order="F")

    def take(self, indices: np.ndarray) -> np.ndarray | None:
        """Return the entries at `indices`; None if each entry is scattered over the file (Fortran order)."""
        each = math.prod(self.shape[1:])
        return None if self._fortran else self._pieces(indices * each, each).reshape(-1, *self.shape[1:])

    def _pieces(self, places: Iterable[int], count: int) -> np.ndarray:
        """Return `count` numbers from each place, as shape (places, count). Places count numbers from the first one."""
        starts = np.fromiter(places, np.int64)
        block = np.empty((len(starts), count), self._stored)
        if block.nbytes:
            # Adjacent pieces are read together.
            firsts = [0, *(np.flatnonzero(np.diff(starts) != count) + 1).tolist()]
            ends = [*firsts[1:], len(starts)]
            offsets = (self._offset + starts[firsts] * self._stored.itemsize).tolist()
            each, target = count * self._stored.itemsize, block.reshape(-1).view(np.uint8).data
            parts = (target[each * first : each * after] for first, after in zip(firsts, ends, strict=True))
            if not read_into(self._path, zip(offsets, parts, strict=True)):
                raise InputError(f"{self.name} became shorter while it was read. Write or copy it again.")
        if not self._bfloat16:
            return block
        bits: np.ndarray = block.astype(np.uint32)
        bits <<= 16
        return bits.view(np.float32)


class RawRows(Rows):
    """Rows of an array of plain numbers, read block by block."""

    def __init__(self, array: RawArray, ids: Any = None) -> None:
        super().__init__(array.name, array.shape, array.dtype, ids)
        self._array = array.checked()

    def _read(self, start: int, stop: int) -> np.ndarray:
        return self._array.read(start, stop)

    def _take(self, indices: np.ndarray) -> np.ndarray:
        taken = self._array.take(indices)
        return super()._take(indices) if taken is None else taken


class NpyHeader(NamedTuple):
    """Shape, order and dtype that an .npy header declares."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Number of bytes of the numbers."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: IO[bytes]) -> NpyHeader:
    """Return an .npy header. Afterwards `file` is at the first number."""
    version = np.lib.format.read_magic(file)
    # Version 3 differs from 2 only in the field names of structured arrays, which cannot be rows anyway.
    one = np.lib.format.read_array_header_1_0
    two = np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        # numpy warns that a file of Python 2 takes longer to read.
        warnings.simplefilter("ignore")
        return NpyHeader(*(one if version == (1, 0) else two)(file))


def refuse_objects(header: NpyHeader, name: str) -> None:
    """Raise an error for an array of Python objects, which only a pickle can load."""
    if header.dtype.hasobject:
        raise InputError(
            f"{name} holds Python objects, which could run code when they are loaded, so nearid never unpickles. "
            "Save numbers instead, for example np.save(path, np.stack(list(x)).astype(np.float32))."
        )


class NpyContents(Contents):
    """The one array of an .npy file."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path, name)
        advice = "Write it again with np.save, or copy it again."
        with damage_told(name, ".npy file", advice), opened(path) as file:
            self.header = read_header(file)
            self._offset = file.tell()

    @property
    def entries(self) -> Mapping[str, Entry]:
        return {"": Entry(self.header.shape, self.header.dtype)}

    def array(self, entry: str) -> RawArray:
        return self._raw().checked()

    def rows(self, entry: str, ids: Any) -> RawRows:
        rows, header = RawRows(self._raw(), ids), self.header
        held = state_of(self.path).size - self._offset
        if held > header.size:
            raise InputError(
                f"{self.name} declares the shape {header.shape} ({readable(header.size)}) but holds {readable(held)}: "
                "several arrays were saved into it, or its header is damaged. Save each array to a file of its own."
            )
        return rows

    def _raw(self) -> RawArray:
        refuse_objects(self.header, self.name)
        shape, fortran, dtype = self.header
        return RawArray(self.path, self._offset, dtype, shape, name=self.name, fortran=fortran)


def read_npy(path: str | os.PathLike[str]) -> np.ndarray:
    """Return an array of any shape in memory. The file must be as long as its header declares."""
    return np.asarray(NpyContents(os.fspath(path), os.path.basename(path)).array(""))


def npy_header(
    shape: tuple[int, ...], dtype: np.dtype[Any], name: str, about: Mapping[str, str], size: int | None
) -> bytes:
    """Return the header of an .npy file. numpy reserves space in it for any number of rows."""
    buffer = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(dtype.newbyteorder("<")), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, described)
    return buffer.getvalue()


_ADVICE = "Write it again with np.savez, or copy it again."


class NpzContents(Contents):
    """The arrays of an .npz archive. Each array is loaded when it is first used."""

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        with damage_told(self.name, ".npz archive", _ADVICE), zipfile.ZipFile(self.path) as archive:
            return {entry: _declared(archive, info) for entry, info in members_of(archive, self.name).items()}

    def array(self, entry: str) -> np.ndarray:
        with damage_told(self.name, ".npz archive", _ADVICE), zipfile.ZipFile(self.path) as archive:
            return load_member(archive, members_of(archive, self.name)[entry], self.label(entry))


def members_of(archive: zipfile.ZipFile, name: str) -> dict[str, zipfile.ZipInfo]:
    """Return the arrays of an archive by name."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        member = info.filename.removesuffix(".npy")
        if member in members and member != info.filename:
            raise InputError(
                f"{name} holds two arrays named {member!r}. Write it again with np.savez and a different name for each."
            )
        if member != info.filename:
            members[member] = info
    return members


def _declared(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Entry:
    with archive.open(info) as member:
        header = read_header(member)
    return Entry(header.shape, header.dtype)


def load_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> np.ndarray:
    """Return one array, after checking that its header is correct and that it fits into memory."""
    with archive.open(info) as member:
        promised = check_member(member, info, name)[1]
        check_memory(name, promised, "Save the array as .npy, which is read block by block.")
        member.seek(0)
        array: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
        member.read(1)  # zipfile compares the checksum only at the end of the member
    return array


def check_member(member: IO[bytes], info: zipfile.ZipInfo, name: str) -> tuple[NpyHeader, int]:
    """Return the header and the size in bytes of a complete array. Afterwards `member` is at the first number."""
    header = read_header(member)
    refuse_objects(header, name)
    promised = header.size
    held = info.file_size - member.tell()
    if promised != held or min(header.shape, default=0) < 0:
        raise InputError(
            f"{name} declares the shape {header.shape} ({readable(promised)}) but holds {readable(held)}: "
            "it is truncated or its header is damaged. Write or copy the archive again."
        )
    return header, promised


NPY = Format((".npy",), NpyContents, header=npy_header, remote=True)
NPZ = Format((".npz",), NpzContents)
