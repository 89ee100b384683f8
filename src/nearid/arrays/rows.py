"""Rows of numbers: the one interface through which all data comes in."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from nearid.arrays.check import check_rows, delivered
from nearid.arrays.ids import row_ids
from nearid.arrays.unchanged import FileState
from nearid.base.errors import InputError, ReadError

_FINGERPRINT_ROWS = 256


class Rows(ABC):
    """Rows of numbers, in memory or in a file, read block by block.

    Parameters
    ----------
    name : str
        What people are shown: a file name (plus key), or for example "array".
    shape : tuple of int
        (n, d); anything but two dimensions is refused.
    stored : numpy.dtype
        How the numbers are stored; `dtype` follows from it.
    ids : array-like of shape (n,), optional
        Strings or integers that name the rows.
    notes : tuple of str
        Sentences worth telling the user.

    Attributes
    ----------
    columns : tuple of str or None
        Names of the columns, where the source has them.
    unused : tuple of str
        Names of the columns of a table that are no features: text, ids, an index.
    index : pandas.Index or None
        Labels of the rows of a DataFrame, a Series or AnnData; None where ids were named instead.
    is_table : bool
        Whether the columns are those of a table, among which there may be metadata.
    inputs_sha256 : str or None
        Hash of what a model was given for these rows, where an extraction tells.
    dtype : numpy.dtype
        What `read` and `take` deliver: float32 for floats of up to 32 bits, float64 for everything else.
    """

    # Rows that `take` may read at once: a subclass sets the number its storage decodes together.
    window = 1024
    columns: tuple[str, ...] | None = None
    unused: tuple[str, ...] = ()
    index: Any = None
    is_table = False
    inputs_sha256: str | None = None
    # The file that is read again for every block, as it was when it was opened.
    file_state: FileState | None = None

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        stored: np.dtype[Any],
        ids: Any = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        check_rows(name, shape, stored)
        self.name = name
        self.shape: tuple[int, int] = (int(shape[0]), int(shape[1]))
        self.dtype = delivered(stored)
        self.ids: np.ndarray | None = None if ids is None else row_ids(name, ids, self.shape[0])
        self.notes = notes

    @abstractmethod
    def _read(self, start: int, stop: int) -> np.ndarray:
        """Rows `start` to `stop` in any numeric dtype; called from several threads."""

    def _take(self, indices: np.ndarray) -> np.ndarray:
        """Rows at `indices`, reading each window of neighbours once."""
        order = np.argsort(indices, kind="stable")
        ordered = indices[order]
        out = np.empty((len(indices), self.shape[1]), self.dtype)
        cuts = np.flatnonzero(np.diff(ordered // self.window)) + 1
        for places, rows in zip(np.split(order, cuts), np.split(ordered, cuts), strict=True):
            if len(rows):
                first, last = int(rows[0]), int(rows[-1])
                out[places] = self._read(first, last + 1)[rows - first]
        return out

    def read(self, start: int, stop: int) -> np.ndarray:
        """Rows `start` to `stop` as an array of shape (stop - start, d); it may be a read-only view."""
        if not 0 <= start <= stop <= self.shape[0]:
            raise IndexError(f"Rows {start} to {stop} were asked of {self.name}, which has {self.shape[0]} rows.")
        with self._told():
            return np.asarray(self._read(start, stop), dtype=self.dtype)

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Rows at `indices` in the order given, as an array of shape (len(indices), d)."""
        indices = np.asarray(indices)
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise IndexError(
                f"Rows of {self.name} are taken by a 1-D array of integers, "
                f"but an array of shape {indices.shape} and dtype {indices.dtype} was given."
            )
        indices = indices.astype(np.intp)
        if indices.size and (indices.min() < 0 or indices.max() >= self.shape[0]):
            raise IndexError(
                f"Row {indices.min() if indices.min() < 0 else indices.max()} was asked of {self.name}, "
                f"which has rows 0 to {self.shape[0] - 1}."
            )
        with self._told():
            return np.asarray(self._take(indices), dtype=self.dtype)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what the system says of a file that is gone or out of reach into a sentence; refuse one that changed."""
        try:
            yield
            if self.file_state is not None:
                self.file_state.check(self.name)
        except OSError as error:
            raise ReadError(f"{self.name} could not be read: {error.strerror or error}.") from error

    def fingerprint(self) -> str:
        """16 hex digits that follow from the shape, the dtype and up to 256 evenly spaced rows."""
        n = self.shape[0]
        count = min(n, _FINGERPRINT_ROWS)
        sample = self.take(np.arange(count) * (n - 1) // (count - 1))
        digest = hashlib.sha256(f"{self.shape} {self.dtype.name}".encode())
        # One byte order, so that all machines agree.
        digest.update(sample.astype(self.dtype.newbyteorder("<"), order="C", copy=False).tobytes())
        return digest.hexdigest()[:16]


def first_nonfinite(block: np.ndarray, start: int) -> tuple[int, int, float] | None:
    """Row, column and value of the first NaN or infinity in a block that begins at row `start`."""
    finite = np.isfinite(block)
    if finite.all():
        return None
    row, column = np.unravel_index(int(np.argmin(finite)), block.shape)
    return start + int(row), int(column), float(block[row, column])


def nonfinite(name: str, row: int, column: int, value: float) -> InputError:
    """Error that names the place of a NaN or infinity."""
    return InputError(
        f"{name} has {value} at row {row}, column {column} (counted from 0). "
        "Fix the values, or drop such rows with drop_nonfinite=True (--drop-nonfinite)."
    )
