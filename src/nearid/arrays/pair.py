"""Pairs of rows: two sources whose rows describe the same samples."""

from functools import cached_property
from typing import Any

import numpy as np

from nearid.arrays.labels import block_codes, refuse_other_blocks
from nearid.arrays.memory import is_count
from nearid.arrays.rows import Rows
from nearid.base.errors import InputError

# Row numbers of one side, in the order of the pairs. None means all rows in their own order.
Index = np.ndarray | None

_POSITION = "To pair by position, call .reset_index(drop=True) on both."


class Single:
    """The rows of a single source, with the interface of `Pair`.

    Attributes
    ----------
    sides : tuple of (Rows, None)
        The source, which has no index.
    n : int
        Number of rows.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows, self.n = rows, rows.shape[0]
        self.sides = ((rows, None),)

    def take(self, indices: np.ndarray) -> tuple[np.ndarray]:
        """Return the rows at `indices`, in this order."""
        return (self.rows.take(indices),)


class Pair:
    """Rows of x and y that describe the same samples, as made by `pair_rows`.

    Attributes
    ----------
    x, y : Rows
        The two sides, with all their rows.
    x_index, y_index : numpy.ndarray of shape (n,) or None
        Row numbers of each side, in the order of the pairs. None means all rows in their own order.
    sides : tuple of (Rows, index)
        Both sides, each with its index.
    n : int
        Number of pairs.
    notes : tuple of str
        Notes for the user, including the notes of both sides.
    blocks : numpy.ndarray of shape (n,) or None
        The block number of each pair, counted from 0. None if neither side has blocks.
    """

    def __init__(
        self,
        x: Rows,
        y: Rows,
        n: int,
        x_index: Index = None,
        y_index: Index = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.x, self.y, self.n = x, y, n
        self.x_index, self.y_index = x_index, y_index
        self.sides = ((x, x_index), (y, y_index))
        self.notes = x.notes + y.notes + notes

    @cached_property
    def blocks(self) -> np.ndarray | None:
        """The block number of each pair, counted from 0. An error is raised if the two sides have different blocks."""
        of_x, of_y = (
            None if rows.blocks is None else block_codes(rows.blocks if index is None else rows.blocks[index])
            for rows, index in self.sides
        )
        if of_x is not None and of_y is not None:
            refuse_other_blocks(self.x.name, of_x, self.y.name, of_y)
        return of_y if of_x is None else of_x

    def read(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return pairs `start` to `stop` as one array of shape (stop - start, d) for each side."""
        return read_side(self.x, self.x_index, start, stop), self.read_y(start, stop)

    def read_y(self, start: int, stop: int) -> np.ndarray:
        """Return only the y side of pairs `start` to `stop`."""
        return read_side(self.y, self.y_index, start, stop)

    def take(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs at `indices`, in this order, as one array for each side."""
        return take_side(self.x, self.x_index, indices), self.take_y(indices)

    def take_y(self, indices: np.ndarray) -> np.ndarray:
        """Return only the y side of the pairs at `indices`."""
        return take_side(self.y, self.y_index, indices)


def pair_rows(x: Rows, y: Rows) -> Pair:
    """Return the pairs of rows of `x` and `y`, in the order of `x`.

    Rows are paired by their index if both sides have one, by their ids if both have ids, and otherwise by position.

    Parameters
    ----------
    x, y : Rows
        The two sides, as opened by `open_rows`.

    Returns
    -------
    Pair
        The rows that both sides have in common.

    Raises
    ------
    InputError
        If fewer than 2 rows can be paired, or ids or labels repeat.

    Examples
    --------
    >>> import numpy as np
    >>> from nearid.arrays import open_rows, pair_rows
    >>> x = open_rows(np.arange(6.0).reshape(3, 2), ids=["a", "b", "c"])
    >>> y = open_rows(np.arange(3.0).reshape(3, 1), ids=["c", "d", "a"])
    >>> pair = pair_rows(x, y)
    >>> pair.n, pair.read_y(0, 2).tolist()
    (2, [[2.0], [0.0]])
    """
    if x.index is not None and y.index is not None:
        pair = _by_index(x, y)
    elif x.ids is not None and y.ids is not None:
        pair = _by_id(x, y, x.ids, y.ids)
    else:
        pair = _by_position(x, y)
    if x.inputs_sha256 and y.inputs_sha256 and x.inputs_sha256 != y.inputs_sha256:
        pair.notes += (
            f"The hashes of the inputs of {x.name} and {y.name} differ: the inputs are different, or they are in a "
            "different order or form.",
        )
    pair.notes += _preprocessed_otherwise(x, y)
    return pair


def _preprocessed_otherwise(x: Rows, y: Rows) -> tuple[str, ...]:
    """Return a note if two models got differently preprocessed inputs, for example normalised and raw."""
    if x.preprocess is None or y.preprocess is None or x.preprocess == y.preprocess:
        return ()
    names = {**x.preprocess, **y.preprocess}
    values = {name: (x.preprocess.get(name), y.preprocess.get(name)) for name in names}
    differences = ", ".join(f"{name} {one} and {two}" for name, (one, two) in values.items() if one != two)
    return (
        f"The inputs of {x.name} and {y.name} were preprocessed differently: {differences}. If both models expect the "
        "same form, extract again with the same options.",
    )


def _by_position(x: Rows, y: Rows) -> Pair:
    if x.shape[0] != y.shape[0]:
        turned = next((z for z, n in ((y, x.shape[0]), (x, y.shape[0])) if z.shape[1] == n > z.shape[0]), None)
        hint = (
            ""
            if turned is None
            else f" {turned.name} has as many columns as the other has rows: transpose it if its "
            "columns are the samples."
        )
        raise InputError(
            f"{x.name} has {x.shape[0]} rows and {y.name} has {y.shape[0]}, so they cannot be paired by position. "
            f"Give ids for both (ids=, --ids), or the same samples in the same order.{hint}"
        )
    notes: tuple[str, ...] = ()
    if x.ids is not None or y.ids is not None:
        named, unnamed = (x, y) if x.ids is not None else (y, x)
        notes = (f"The rows are paired by position, because {named.name} has ids but {unnamed.name} has none.",)
    for rows, other in ((x, y), (y, x)):
        if rows.ids is None and rows.index is not None and not is_count(rows.index):
            notes += (f"The rows are paired by position, because {rows.name} has an index but {other.name} has none.",)
    return Pair(x, y, x.shape[0], notes=notes)


def _by_index(x: Rows, y: Rows) -> Pair:
    """Pair rows with equal labels. If both indexes are equal, labels may repeat and have any type."""
    of_y = as_levels_of(y.index, x.index)
    if x.index.equals(of_y):
        return Pair(x, y, x.shape[0])
    for rows in (x, y):
        if not rows.index.is_unique:
            twice = rows.index[rows.index.duplicated()][0]
            raise InputError(
                f"The index of {rows.name} has {_shown(twice)} more than once and the indexes of {x.name} and {y.name} "
                f"differ, so the rows cannot be paired. Make the labels unique. {_POSITION}"
            )
    notes: tuple[str, ...] = ()
    at = _places(x.index, of_y)
    if not (at >= 0).any() and {x.index.inferred_type, y.index.inferred_type} == {"string", "integer"}:
        at = _places(x.index.astype(str), y.index.astype(str))
        text, numbers = (x, y) if x.index.inferred_type == "string" else (y, x)
        notes = (
            f"The index of {text.name} holds strings and the index of {numbers.name} holds integers, so the labels are "
            "compared as strings.",
        )
    x_index = np.flatnonzero(at >= 0)
    if len(x_index) < 2:
        shared = f"Only one label of the index of {x.name}" if len(x_index) else f"No label of the index of {x.name}"
        raise InputError(
            f"{shared} (such as {_shown(x.index[0])}) is in the index of {y.name} (such as {_shown(y.index[0])}), so "
            f"the rows cannot be paired. Give both the same labels, or pair by a column of ids: ids (--ids). "
            f"{_POSITION}"
        )
    return _joined(x, y, x_index, at[x_index], "index", notes)


def as_levels_of(index: Any, other: Any) -> Any:
    """Return an index with its levels in the order of another index, if both have the same named levels."""
    same = index.nlevels > 1 and set(index.names) == set(other.names) and len(set(index.names)) == index.nlevels
    return index.reorder_levels(other.names) if same and index.names != other.names else index


def _places(labels: Any, among: Any) -> np.ndarray:
    """Return the position of each label in another index; -1 if it is not there."""
    if labels.nlevels != among.nlevels:
        return np.full(len(labels), -1)
    return np.asarray(among.get_indexer(labels))


def _shown(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)


def _by_id(x: Rows, y: Rows, x_ids: np.ndarray, y_ids: np.ndarray) -> Pair:
    x_ids, y_ids, notes = _comparable(x, y, x_ids, y_ids)
    _refuse_duplicates(x, x_ids)
    order = _refuse_duplicates(y, y_ids)
    at = order[np.minimum(np.searchsorted(y_ids, x_ids, sorter=order), len(order) - 1)]
    x_index = np.flatnonzero(y_ids[at] == x_ids)
    y_index = at[x_index]
    n = len(x_index)
    if n == 0:
        raise InputError(
            f"No id of {x.name} (such as {x_ids[0].item()!r}) is an id of {y.name} (such as {y_ids[0].item()!r}). "
            "Check that both use the same kind of ids."
        )
    if n < 2:
        raise InputError(
            f"{x.name} and {y.name} share only the id {x_ids[x_index[0]].item()!r}, but at least 2 rows are needed. "
            "Check that both use the same kind of ids."
        )
    return _joined(x, y, x_index, y_index, "id", notes)


def _joined(x: Rows, y: Rows, x_index: np.ndarray, y_index: np.ndarray, by: str, notes: tuple[str, ...]) -> Pair:
    n = len(x_index)
    for rows in (x, y):
        if rows.shape[0] > n:
            notes += (
                f"{rows.shape[0] - n} of the {rows.shape[0]} rows of {rows.name} are left out: the other side has no "
                f"row with the same {by}.",
            )
    return Pair(x, y, n, _none_if_all(x_index, x), _none_if_all(y_index, y), notes)


def _comparable(
    x: Rows, y: Rows, x_ids: np.ndarray, y_ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    kinds = x_ids.dtype.kind, y_ids.dtype.kind
    if kinds[0] == kinds[1]:
        return x_ids, y_ids, ()
    # Also for signed and unsigned integers: numpy would compare them as floats and confuse large ids.
    as_text = x_ids.astype(np.str_), y_ids.astype(np.str_)
    if "U" not in kinds:
        return *as_text, ()
    text, numbers = (x, y) if kinds[0] == "U" else (y, x)
    return *as_text, (
        f"The ids of {text.name} are strings and the ids of {numbers.name} are integers, so they are compared as "
        "strings.",
    )


def _refuse_duplicates(rows: Rows, ids: np.ndarray) -> np.ndarray[Any, np.dtype[np.intp]]:
    order = np.argsort(ids, kind="stable")
    repeats = ids[order[1:]] == ids[order[:-1]]
    if repeats.any():
        at = int(np.argmax(repeats))
        raise InputError(
            f"{rows.name} has the id {ids[order[at]].item()!r} more than once (rows {order[at]} and {order[at + 1]}), "
            "so its rows cannot be paired by id. Make the ids unique or leave them out."
        )
    return order


def _none_if_all(index: np.ndarray, rows: Rows) -> Index:
    return None if np.array_equal(index, np.arange(rows.shape[0])) else index


def read_side(rows: Rows, index: Index, start: int, stop: int) -> np.ndarray:
    """Return one side of pairs `start` to `stop`."""
    if index is None:
        return rows.read(start, stop)
    if not 0 <= start <= stop <= len(index):
        raise IndexError(f"Pairs {start} to {stop} do not exist: only {len(index)} rows of {rows.name} are paired.")
    part = index[start:stop]
    if len(part) and (np.diff(part) == 1).all():
        return rows.read(int(part[0]), int(part[-1]) + 1)
    return rows.take(part)


def part_of(index: Index, start: int, stop: int) -> Index:
    """Return the row numbers of pairs `start` to `stop`; None if they are those of the pairs."""
    return None if index is None else index[start:stop]


def read_part(rows: Rows, part: Index, start: int, stop: int) -> np.ndarray:
    """Return one side of pairs `start` to `stop`, whose row numbers `part_of` has given."""
    return rows.read(start, stop) if part is None else read_side(rows, part, 0, len(part))


def take_side(rows: Rows, index: Index, indices: np.ndarray) -> np.ndarray:
    """Return one side of the pairs at `indices`."""
    return rows.take(indices if index is None else index[indices])
