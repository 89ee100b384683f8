"""Row ids: strings or integers, one per row."""

from typing import Any

import numpy as np

from nearid.base.errors import InputError


def row_ids(name: str, values: Any, n: int) -> np.ndarray:
    """Check the ids of `n` rows and bring them to int64 (uint64 where needed) or str.

    Parameters
    ----------
    name : str
        The source the rows come from, for the messages.
    values : array-like of shape (n,)
        Strings, bytes (read as UTF-8) or integers.
    n : int
        Number of rows.
    """
    array = np.asarray(values)
    if array.shape != (n,):
        raise InputError(
            f"The ids of {name} have shape {array.shape}, but one id for each of its {n} rows is expected."
        )
    if array.dtype.kind == "O":
        array = _from_objects(name, array)
    if array.dtype.kind == "S":
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"The ids of {name} are bytes that are not UTF-8 text: {error}.") from None
    if array.dtype.kind in "UT":
        # Strings of any length, as of zarr, have no length to convert to; a list of them has.
        array = np.asarray(array.tolist(), np.str_)
        if (array == "").any():
            raise _no_id(name, int(np.argmax(array == "")), "")
        return array
    if array.dtype.kind not in "iu":
        raise InputError(
            f"The ids of {name} have dtype {array.dtype}, but strings or integers are expected: "
            "floats do not compare reliably. Convert them first, for example with ids.astype(np.int64)."
        )
    if array.dtype == np.uint64 and array.max(initial=0) > np.iinfo(np.int64).max:
        return array
    return array.astype(np.int64)


def _from_objects(name: str, array: np.ndarray) -> np.ndarray:
    if all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in array):
        integers = np.asarray(array.tolist())
        # Integers beyond 64 bits stay objects in numpy; as text they still compare exactly.
        return integers if integers.dtype.kind in "iu" else np.asarray([str(value) for value in array])
    for row, value in enumerate(array):
        if not isinstance(value, str | bytes):
            raise _no_id(name, row, value)
    try:
        return np.asarray([value.decode("utf-8") if isinstance(value, bytes) else value for value in array])
    except UnicodeDecodeError as error:
        raise InputError(f"The ids of {name} are bytes that are not UTF-8 text: {error}.") from None


def _no_id(name: str, row: int, value: object) -> InputError:
    return InputError(
        f"The id of row {row} of {name} is {value!r}, but every id must be a string, or every id an integer. "
        "Fill in the missing ids or drop those rows."
    )
