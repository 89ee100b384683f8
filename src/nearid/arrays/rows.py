"""Rows of numbers: the interface through which nearid reads all data, and the checks of what can be rows."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from nearid.arrays.dates import date_texts
from nearid.arrays.reading import FileState
from nearid.base.errors import InputError, ReadError

_FINGERPRINT_ROWS = 256


class Rows(ABC):
    """Rows of numbers in memory or in a file, read block by block. `open_rows` makes them.

    A subclass implements `_read` for its storage.

    Parameters
    ----------
    name : str
        Name in messages and reports: a file name (with its key), or for example "array".
    shape : tuple of int
        (n, d). Other numbers of dimensions raise an error.
    stored : numpy.dtype
        Type of the stored numbers. `dtype` follows from it.
    ids : array-like of shape (n,), optional
        Strings or integers that identify the rows.
    notes : tuple of str
        Notes for the user.

    Attributes
    ----------
    columns : tuple of str or None
        Names of the columns, if the source has them.
    titles : tuple of str or None
        Names of the columns for people, if the source is no table but names them: the variables of AnnData.
    unused : tuple of str
        Names of the columns of a table that are not features: text, ids, an index.
    index : pandas.Index or None
        Row labels of a DataFrame, a Series or AnnData. None if ids were given instead.
    is_table : bool
        Whether the source is a table, so that some columns may be metadata.
    blocks : numpy.ndarray of shape (n,) or None
        Strings or integers. Rows with the same block belong together, such as the tokens of one text or the cells of
        one well.
    origin : str, DataFrame or None
        The file or table from which the rows were opened. It may contain a column of blocks.
    inputs_sha256 : str or None
        Hash of the model inputs of these rows, if an extraction recorded it.
    preprocess : dict or None
        How the model inputs were preprocessed, if an extraction recorded it.
    dtype : numpy.dtype
        Type of the numbers that `read` and `take` return: float32 for floats of up to 32 bits, otherwise float64.

    Examples
    --------
    >>> import nearid, numpy as np
    >>> rows = nearid.open_rows(np.arange(8.0).reshape(4, 2))
    >>> rows.take(np.array([3, 0])).tolist()
    [[6.0, 7.0], [0.0, 1.0]]
    """

    # Number of rows that `take` may read at once. A subclass sets the number that its storage decodes together.
    window = 1024
    columns: tuple[str, ...] | None = None
    titles: tuple[str, ...] | None = None
    unused: tuple[str, ...] = ()
    index: Any = None
    is_table = False
    blocks: np.ndarray | None = None
    origin: Any = None
    inputs_sha256: str | None = None
    preprocess: dict[str, Any] | None = None
    # State of the file when it was opened, since the file is read again for every block.
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
        """Return rows `start` to `stop` in any numeric dtype. Several threads may call this at once."""

    def _take(self, indices: np.ndarray) -> np.ndarray:
        """Return the rows at `indices`. Each window of neighbouring rows is read once."""
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
        """Return rows `start` to `stop` as an array of shape (stop - start, d), which may be a read-only view.

        Parameters
        ----------
        start, stop : int

        Returns
        -------
        ndarray of shape (stop - start, d)
        """
        if not 0 <= start <= stop <= self.shape[0]:
            raise IndexError(f"Rows {start} to {stop} do not exist: {self.name} has {self.shape[0]} rows.")
        with self._reading_errors():
            return np.asarray(self._read(start, stop), dtype=self.dtype)

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Return the rows at `indices`, in this order, as an array of shape (len(indices), d).

        Parameters
        ----------
        indices : array of int, of shape (k,)

        Returns
        -------
        ndarray of shape (k, d)
        """
        indices = np.asarray(indices)
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise IndexError(
                f"The indices of rows of {self.name} must be a 1-D array of integers, "
                f"but they have shape {indices.shape} and dtype {indices.dtype}."
            )
        indices = indices.astype(np.intp)
        if indices.size and (indices.min() < 0 or indices.max() >= self.shape[0]):
            raise IndexError(
                f"Row {indices.min() if indices.min() < 0 else indices.max()} does not exist: "
                f"{self.name} has rows 0 to {self.shape[0] - 1}."
            )
        with self._reading_errors():
            return np.asarray(self._take(indices), dtype=self.dtype)

    @contextmanager
    def _reading_errors(self) -> Iterator[None]:
        """Turn an OSError into a ReadError with one sentence, and raise an error if the file has changed."""
        try:
            yield
            if self.file_state is not None:
                self.file_state.check(self.name)
        except OSError as error:
            raise ReadError(f"{self.name} could not be read: {error.strerror or error}.") from error

    def fingerprint(self) -> str:
        """Return a hash (16 hex digits) of the shape, the dtype and up to 256 evenly spaced rows."""
        n = self.shape[0]
        count = min(n, _FINGERPRINT_ROWS)
        sample = self.take(np.arange(count) * (n - 1) // (count - 1))
        digest = hashlib.sha256(f"{self.shape} {self.dtype.name}".encode())
        # One byte order, so that all machines agree.
        digest.update(sample.astype(self.dtype.newbyteorder("<"), order="C", copy=False).tobytes())
        return digest.hexdigest()[:16]


def first_nonfinite(block: np.ndarray, start: int) -> tuple[int, int, float] | None:
    """Return row, column and value of the first NaN or infinity in a block that starts at row `start`."""
    finite = np.isfinite(block)
    if finite.all():
        return None
    row, column = np.unravel_index(int(np.argmin(finite)), block.shape)
    return start + int(row), int(column), float(block[row, column])


def nonfinite(name: str, row: int, column: int, value: float, columns: tuple[str, ...] | None = None) -> InputError:
    """Return the error that names the row and column of a NaN or infinity, the column by its name if it has one."""
    place = f"{column} (counted from 0)" if columns is None else f"{columns[column]!r} (rows are counted from 0)"
    return InputError(
        f"{name} has {value} at row {row}, column {place}. "
        "Fix the values, or drop such rows with drop_nonfinite=True (--drop-nonfinite)."
    )


def delivered(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which numbers stored as `dtype` are computed: float32 or float64."""
    small_float = dtype.kind == "f" and dtype.itemsize <= 4
    return np.dtype(np.float32 if small_float or dtype.name == "bfloat16" else np.float64)


def is_numeric(dtype: np.dtype[Any]) -> bool:
    """Return whether `dtype` holds real numbers or booleans."""
    # bfloat16 comes from ml_dtypes and has the kind of a structured dtype there.
    return dtype.kind in "fiub" or dtype.name == "bfloat16"


_fewest: ContextVar[int] = ContextVar("fewest", default=2)


@contextmanager
def single_rows() -> Iterator[None]:
    """Accept sources with a single row in this context: applying a fitted map needs one row, a fit needs two."""
    token = _fewest.set(1)
    try:
        yield
    finally:
        _fewest.reset(token)


def refuse_few(name: str, shape: tuple[int, ...]) -> None:
    """Raise an error if there are fewer rows than needed."""
    least = _fewest.get()
    if shape[0] < least:
        needed = "1 row is" if least == 1 else f"{least} rows are"
        raise InputError(f"{name} has shape {shape}, but at least {needed} needed: give one row per sample.")


def check_rows(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise an error unless there are at least 2 rows (1 in `single_rows`) and 1 column of real numbers."""
    if not is_numeric(dtype):
        raise InputError(f"{name} has dtype {dtype}, but rows of real numbers are expected. {_dtype_advice(dtype)}")
    if any(size < 0 for size in shape):
        raise InputError(
            f"{name} declares the shape {shape}. A negative size means that its header is damaged. Write or copy it "
            "again."
        )
    if len(shape) != 2:
        raise InputError(f"{name} has shape {shape}, but (rows, columns) is expected. {_shape_advice(shape)}")
    refuse_few(name, shape)
    if shape[1] < 1:
        raise InputError(f"{name} has shape {shape}, but at least 1 column is needed: give one column per feature.")


def _dtype_advice(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "c":
        return "Save the real and imaginary parts side by side: np.hstack([x.real, x.imag])."
    if dtype.kind in "SUT":
        return "Convert the strings first, for example with x.astype(np.float64)."
    if dtype.kind == "M":
        return "Convert the dates first, for example with (x - x.min()) / np.timedelta64(1, 'D')."
    if dtype.kind == "V" and dtype.names:
        return "Stack the fields as columns with np.lib.recfunctions.structured_to_unstructured(x)."
    return "Convert it first, for example with x.astype(np.float32)."


def _shape_advice(shape: tuple[int, ...]) -> str:
    if len(shape) == 0:
        return "Give one row per sample and one column per feature."
    if len(shape) == 1:
        return f"If these are {shape[0]} samples of one feature, use x.reshape(-1, 1)."
    tokens = (
        f"If they are tokens, give x.reshape(-1, {shape[2]}) with blocks=np.repeat(np.arange({shape[0]}), {shape[1]}). "
        if len(shape) == 3
        else ""
    )
    flat = (shape[0], math.prod(shape[1:]))
    mean = (shape[0], *shape[2:])
    return (
        f"{tokens}Flatten each sample with x.reshape(len(x), -1) to {flat}, or average an axis with x.mean(axis=1) to "
        f"{mean}."
    )


def refuse_masked(name: str, values: Any) -> None:
    """Raise an error for a masked array, because numpy would read the masked numbers."""
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array. Fill the masked entries first, for example with x.filled(np.nan).")


def row_ids(name: str, values: Any, n: int, what: str = "id") -> np.ndarray:
    """Return the checked ids of `n` rows as int64 (uint64 if needed) or str.

    Parameters
    ----------
    name : str
        Name of the source in messages.
    values : array-like of shape (n,)
        Strings, bytes (read as UTF-8), integers or dates.
    n : int
        Number of rows.
    what : str
        Name of an id in messages.
    """
    refuse_masked(f"The list of {what}s of {name}", values)
    array = np.asarray(values)
    if array.dtype.kind in "USOT" and array.ndim == 1:
        _refuse_nul(name, values if isinstance(values, list | tuple) else array, what)
    if array.shape != (n,):
        raise InputError(
            f"The {what}s of {name} have shape {array.shape}, but one {what} for each of its {n} rows is expected."
        )
    dates = date_texts(array)
    array = array if dates is None else dates
    if array.dtype.kind == "O":
        array = _from_objects(name, array, what)
    if array.dtype.kind == "S":
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"The {what}s of {name} are bytes that are not UTF-8 text: {error}.") from None
    if array.dtype.kind in "UT":
        # Variable-length strings, as zarr returns them, cannot be converted directly, but as a list they can.
        array = np.asarray(array.tolist(), np.str_)
        if (array == "").any():
            raise _no_id(name, int(np.argmax(array == "")), "", what)
        return array
    if array.dtype.kind not in "iu":
        raise InputError(
            f"The {what}s of {name} have dtype {array.dtype}, but strings or integers are expected: "
            f"floats do not compare reliably. Convert them first, for example with {what}s.astype(np.int64)."
        )
    if array.dtype == np.uint64 and array.max(initial=0) > np.iinfo(np.int64).max:
        return array
    return array.astype(np.int64)


def _refuse_nul(name: str, values: Iterable[Any], what: str) -> None:
    """Raise an error for strings that end in NUL: numpy drops it, and two ids could become equal."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "US":
        # numpy has already dropped it.
        return
    for row, value in enumerate(values):
        if isinstance(value, str | bytes) and value[-1:] in ("\0", b"\0"):
            raise InputError(
                f"The {what} of row {row} of {name} is {value!r}, which ends in a NUL character. numpy drops it, so "
                f"two {what}s could become equal. Remove it, for example with value.rstrip('\\0')."
            )


def _from_objects(name: str, array: np.ndarray, what: str) -> np.ndarray:
    if all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in array):
        integers = np.asarray(array.tolist())
        # Integers beyond 64 bits are objects in numpy. As text they can still be compared exactly.
        return integers if integers.dtype.kind in "iu" else np.asarray([str(value) for value in array])
    for row, value in enumerate(array):
        if not isinstance(value, str | bytes):
            raise _no_id(name, row, value, what)
    try:
        return np.asarray([value.decode("utf-8") if isinstance(value, bytes) else value for value in array])
    except UnicodeDecodeError as error:
        raise InputError(f"The {what}s of {name} are bytes that are not UTF-8 text: {error}.") from None


def _no_id(name: str, row: int, value: object, what: str) -> InputError:
    return InputError(
        f"The {what} of row {row} of {name} is {value!r}, but the {what}s must be all strings or all integers. Fill in "
        f"missing {what}s or drop these rows."
    )


# Number of bytes that are read at once.
BLOCK = 1 << 24


def digest(rows: Rows, index: np.ndarray | None = None, *, with_ids: bool = True) -> str:
    """Return a hash (16 hex digits) of the shape, the dtype and all numbers and ids of some rows.

    `Rows.fingerprint` only samples the rows, but this hash changes with every number. It identifies stored results.

    Parameters
    ----------
    rows : Rows
    index : ndarray of int, optional
        The rows to hash, in this order. Default: all rows.
    with_ids : bool
        Whether the hash depends on the ids.
    """
    n, width = (rows.shape[0] if index is None else len(index)), rows.shape[1]
    ids = None
    if with_ids and rows.ids is not None:
        ids = (rows.ids if index is None else rows.ids[index]).tolist()
    hashed = hashlib.sha256(f"{(n, width)} {rows.dtype.name} {ids!r}".encode())
    # One byte order, so that all machines agree.
    stored = rows.dtype.newbyteorder("<")
    step = max(1, BLOCK // (width * rows.dtype.itemsize))
    for start in range(0, n, step):
        stop = min(start + step, n)
        block = rows.read(start, stop) if index is None else rows.take(index[start:stop])
        hashed.update(block.astype(stored, order="C", copy=False).tobytes())
    return hashed.hexdigest()[:16]
