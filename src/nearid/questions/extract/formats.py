"""Rows appended to plain files whose header is written last, as .npy or .safetensors; or turned into .zarr."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from nearid.base.errors import InputError, unknown
from nearid.base.files import replacing_folder

FORMATS = ("npy", "zarr", "safetensors")
# Rows that have no header yet; only .zarr keeps them in another file.
RAW = ".rows"
# Chunks of a zarr array, which are also read at once while it is made.
CHUNK_BYTES = 8 << 20
_CODES = {"float16": "F16", "float32": "F32", "float64": "F64"}
# More rows than any file holds, to leave room for the number in the header.
_MOST = 10**18


def check_format(form: str) -> str:
    """Refuse a format that does not exist."""
    if form not in FORMATS:
        raise InputError(unknown("format", form, FORMATS))
    return form


class Part:
    """The rows of one layer (or the ids) while they are written.

    The file is opened for each write and never kept open, so that a model may have more layers than a process may have
    files. Until `finish` its header is zeros, so that nobody takes it for a whole file.

    Parameters
    ----------
    folder : Path
    stem : str
        Name without suffix.
    form : str
        One of FORMATS.
    width : int or None
        Columns; None for rows that are single values.
    dtype : numpy.dtype
    name, about : str, dict of str
        Of the tensor in a .safetensors file, and its metadata.
    """

    def __init__(
        self,
        folder: Path,
        stem: str,
        form: str,
        width: int | None,
        dtype: np.dtype[Any],
        name: str = "rows",
        about: dict[str, str] | None = None,
    ) -> None:
        self.final = folder / f"{stem}.{form}"
        self.path = folder / f"{stem}{RAW}" if form == "zarr" else self.final
        self.width, self.dtype = width, dtype.newbyteorder("<")
        self._form, self._name, self._about = form, name, about or {}
        self._offset = len(self._header(_MOST))

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.dtype.itemsize * (1 if self.width is None else self.width)

    def cut(self, rows: int) -> None:
        """Keep the first rows alone; with 0 the file begins anew."""
        if self.final.is_dir():
            return  # made whole already
        size = self._offset + rows * self.row_bytes
        with open(self.path, "r+b" if rows else "wb") as file:
            if rows and os.fstat(file.fileno()).st_size < size:
                raise InputError(f"{self.path} is shorter than it was: begin anew with restart=True (--restart).")
            file.truncate(size)

    def first(self, rows: int) -> np.ndarray:
        """The first rows that were written."""
        if self.final.is_dir():
            import zarr

            return np.asarray(zarr.open_array(self.final, mode="r")[:rows])
        width = self.width or 1
        return np.fromfile(self.path, self.dtype, rows * width, offset=self._offset).reshape(rows, width)

    def append(self, block: np.ndarray) -> None:
        """Add rows."""
        with open(self.path, "ab", buffering=0) as file:
            left = np.ascontiguousarray(block, self.dtype).view(np.uint8).reshape(-1).data
            while len(left):
                left = left[file.write(left) :]

    def sync(self) -> None:
        """Bring what was added to the disk."""
        if self.path.exists():
            with open(self.path, "rb") as file:
                os.fsync(file.fileno())

    def finish(self, rows: int, about: dict[str, str]) -> None:
        """Write the header, or turn the rows into a zarr array; done again without harm after an interruption."""
        self._about = {**self._about, **about}
        if self._form == "zarr":
            self._to_zarr(rows)
            return
        header = self._header(rows)
        with open(self.path, "r+b") as file:
            file.write(header)
            file.flush()
            os.fsync(file.fileno())

    def _header(self, rows: int) -> bytes:
        shape = (rows,) if self.width is None else (rows, self.width)
        if self._form == "zarr":
            return b""
        if self._form == "npy":
            buffer = io.BytesIO()
            described = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(buffer, described)
            return buffer.getvalue()
        told = {"dtype": _CODES[self.dtype.name], "shape": shape, "data_offsets": [0, rows * self.row_bytes]}
        # Written once with the longest of numbers to know how long it may become; spaces fill it up.
        text = json.dumps({"__metadata__": self._about, self._name: told}).encode()
        size = getattr(self, "_offset", 0) - 8 if rows != _MOST else -(-(len(text) + 256) // 64) * 64 - 8
        return size.to_bytes(8, "little") + text.ljust(size)

    def _to_zarr(self, rows: int) -> None:
        import zarr

        if self.final.is_dir():
            return
        chunk = max(1, min(rows, CHUNK_BYTES // self.row_bytes))
        shape = (rows, self.width or 1)
        with replacing_folder(self.final) as folder:
            array = zarr.create_array(
                store=str(folder),
                shape=shape,
                dtype=self.dtype,
                chunks=(chunk, shape[1]),
                attributes=dict(self._about),
                config={"write_empty_chunks": True},
            )
            for start in range(0, rows, chunk):
                count = min(chunk, rows - start)
                block = np.fromfile(self.path, self.dtype, count * shape[1], offset=start * self.row_bytes)
                array[start : start + count] = block.reshape(count, shape[1])
        self.path.unlink()
