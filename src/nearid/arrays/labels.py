"""Checks of block labels, and the comparison of two block labellings of the same rows."""

from typing import Any

import numpy as np

from nearid.arrays.dates import date_texts, is_missing
from nearid.arrays.memory import as_numpy, is_a, refuse_unreadable
from nearid.arrays.rows import row_ids
from nearid.arrays.tables import one_column
from nearid.base.errors import InputError


def _fractions(texts: np.ndarray) -> int | None:
    """Return the first row with a fraction if the texts are numbers that hardly repeat, that is, measurements."""
    if 2 * len(np.unique(texts)) < len(texts):
        return None
    try:
        numbers = texts.astype(np.float64)
    except ValueError:
        return None
    broken = np.isfinite(numbers) & (numbers != np.rint(numbers))
    return int(np.argmax(broken)) if broken.any() else None


def row_blocks(name: str, values: Any, n: int, *, in_file: bool = False) -> np.ndarray:
    """Return the checked blocks of `n` rows as integers or str. Floats that are whole numbers become integers.

    `in_file` states whether the values come from a file. Only messages depend on it.
    """
    refuse_unreadable(f"The list of blocks of {name}", values)
    try:
        array = as_numpy(values) if is_a(values, "torch", "Tensor") else one_column(values)
    except Exception as error:  # The conversion runs code of the source's own class, which may raise anything.
        raise InputError(f"The blocks of {name} cannot be converted to an array of {n} labels: {error}.") from None
    array = array[:, 0] if array.shape == (n, 1) else array
    if array.shape != (n,):
        raise InputError(_other_shape(name, array, n, in_file=in_file))
    dates = date_texts(array)
    array = array if dates is None else dates
    if array.dtype.kind == "O":
        missing = np.array([is_missing(value) for value in array])
        if missing.any():
            raise _no_block(name, int(np.argmax(missing)), array[np.argmax(missing)])
        if all(isinstance(value, float | np.floating) for value in array):
            array = array.astype(np.float64)
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        broken = ~np.isfinite(array) | (array != np.rint(array))
        if broken.any():
            raise _no_block(name, int(np.argmax(broken)), array[np.argmax(broken)].item())
        far = np.abs(array) >= 2**53
        if far.any():
            raise InputError(
                f"The block of row {int(np.argmax(far))} of {name} is {array[np.argmax(far)].item()!r}. Floats beyond "
                "2^53 lose digits, so different blocks could become equal. Give the blocks as integers or text."
            )
        array = array.astype(np.int64)
    # For a list, check its own strings: numpy drops NUL characters at the end when it makes an array.
    texts = isinstance(values, list | tuple) and array.dtype.kind in "US"
    labels = row_ids(name, values if texts else array, n, "block")
    row = _fractions(labels) if labels.dtype.kind == "U" else None
    if row is not None:
        raise _no_block(name, row, str(labels[row]))
    return labels


def _other_shape(name: str, array: np.ndarray, n: int, *, in_file: bool) -> str:
    expected = f"one label for each of its {n} rows is expected"
    if array.ndim == 0:
        return (
            f"The blocks of {name} are {array.item()!r}, but {expected} (an array, a list or a Series). Or give the "
            "name of a column or file, or blocks='none'."
        )
    if array.ndim > 1:
        return f"The blocks of {name} have shape {array.shape}, but {expected}. Give a single column of labels."
    header = in_file and len(array) == n - 1
    hint = (
        "The first line of a .csv file is read as the column name: add such a line."
        if header
        else "Give the labels of the same rows."
    )
    return f"The blocks of {name} have shape {array.shape}, but {expected}. {hint}"


def _no_block(name: str, row: int, value: Any) -> InputError:
    missing = is_missing(value) or value == ""
    advice = (
        "Fill in the missing blocks or drop those rows."
        if missing
        else "Measurements cannot be blocks: give what the rows have in common, such as a well or a text."
    )
    return InputError(
        f"The block of row {row} of {name} is {value!r}, but a string or a whole number is expected. {advice}"
    )


def block_codes(labels: np.ndarray) -> np.ndarray:
    """Return labels as integers 0, 1, ... by first occurrence, so that folds do not depend on the label names."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.intp)
    place[np.argsort(first)] = np.arange(len(first))
    return np.asarray(place[codes])


def refuse_other_blocks(x_name: str, x_labels: np.ndarray | None, y_name: str, y_labels: np.ndarray | None) -> None:
    """Raise an error if two labellings divide the same rows into different blocks. The label names may differ."""
    assert x_labels is not None and y_labels is not None
    if x_labels is y_labels:
        return
    for one, two, name, other in ((x_labels, y_labels, x_name, y_name), (y_labels, x_labels, y_name, x_name)):
        _, first, codes = np.unique(one, return_index=True, return_inverse=True)
        # On the other side, each row must be in the same block as the first row of its block on this side.
        differ = two != two[first[codes]]
        if differ.any():
            row = int(np.argmax(differ))
            raise InputError(
                f"The blocks of {x_name} and {y_name} differ in row {row}: it is in the same block as row "
                f"{first[codes[row]]} in {name}, but not in {other}. Give the blocks of one of them as an array, or "
                "ignore them with blocks='none' (--blocks none)."
            )
