"""Labels of the blocks that rows belong to: checked, counted, and compared as partitions of the rows."""

from typing import Any

import numpy as np

from nearid.arrays.dates import date_texts, is_missing
from nearid.arrays.memory import as_numpy, is_a, refuse_unreadable
from nearid.arrays.rows import row_ids
from nearid.arrays.tables import one_column
from nearid.base.errors import InputError


def _fractions(texts: np.ndarray) -> int | None:
    """First row with a fraction, where texts are numbers that hardly repeat: measurements, which are no blocks."""
    if 2 * len(np.unique(texts)) < len(texts):
        return None
    try:
        numbers = texts.astype(np.float64)
    except ValueError:
        return None
    broken = np.isfinite(numbers) & (numbers != np.rint(numbers))
    return int(np.argmax(broken)) if broken.any() else None


def row_blocks(name: str, values: Any, n: int, *, in_file: bool = False) -> np.ndarray:
    """Check the blocks of `n` rows and bring them to integers or str; whole floats, as of a table, are integers.

    `in_file` says that the values are those of a file, for messages.
    """
    refuse_unreadable(f"The list of blocks of {name}", values)
    try:
        array = as_numpy(values) if is_a(values, "torch", "Tensor") else one_column(values)
    except Exception as error:  # Making the array runs the source's own code, which may raise anything.
        raise InputError(f"The blocks of {name} cannot be made an array of {n} labels: {error}.") from None
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
                f"The block of row {int(np.argmax(far))} of {name} is {array[np.argmax(far)].item()!r}. Whole numbers "
                "from 2^53 on lose digits as floats, and then two blocks could be equal. Give them as integers or text."
            )
        array = array.astype(np.int64)
    # Of a list the texts themselves: the array has lost what numpy drops.
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
            f"The blocks of {name} are {array.item()!r}, but {expected}: an array, a list or a Series. In place of the "
            "labels, name a column or a file, or give blocks='none'."
        )
    if array.ndim > 1:
        return f"The blocks of {name} have shape {array.shape}, but {expected}. Give a single column of labels."
    header = in_file and len(array) == n - 1
    hint = "A .csv file begins with a line that names its column." if header else "Give the labels of the same rows."
    return f"The blocks of {name} have shape {array.shape}, but {expected}. {hint}"


def _no_block(name: str, row: int, value: Any) -> InputError:
    missing = is_missing(value) or value == ""
    advice = (
        "Fill in the missing blocks or drop those rows."
        if missing
        else "Measurements are no blocks: name what the rows have in common, as a well or a text."
    )
    return InputError(
        f"The block of row {row} of {name} is {value!r}, but a string or a whole number is expected. {advice}"
    )


def block_codes(labels: np.ndarray) -> np.ndarray:
    """Labels as integers from 0 on, in the order in which they come: the folds do not depend on how they are spelt."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.intp)
    place[np.argsort(first)] = np.arange(len(first))
    return np.asarray(place[codes])


def refuse_other_blocks(x_name: str, x_labels: np.ndarray | None, y_name: str, y_labels: np.ndarray | None) -> None:
    """Refuse two lists of labels that part the same rows differently; the labels themselves may differ."""
    assert x_labels is not None and y_labels is not None
    if x_labels is y_labels:
        return
    for one, two, name, other in ((x_labels, y_labels, x_name, y_name), (y_labels, x_labels, y_name, x_name)):
        _, first, codes = np.unique(one, return_index=True, return_inverse=True)
        # The first row of the block that each row belongs to must be in the same block on the other side, too.
        differ = two != two[first[codes]]
        if differ.any():
            row = int(np.argmax(differ))
            raise InputError(
                f"The blocks of {x_name} and {y_name} differ in row {row}: it is in the same block as row "
                f"{first[codes[row]]} in {name}, but not in {other}. Give the blocks of one of them as an array, or "
                "ignore them with blocks='none' (--blocks none)."
            )
