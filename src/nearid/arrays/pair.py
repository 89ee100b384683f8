"""Two sets of rows, row by row about the same samples."""

from functools import cached_property
from typing import Any

import numpy as np

from nearid.arrays.labels import block_codes, refuse_other_blocks
from nearid.arrays.memory import is_count
from nearid.arrays.rows import Rows
from nearid.base.errors import InputError

# Rows of a side that make up the pairs; None when these are all rows in order.
Index = np.ndarray | None

_POSITION = "To pair by position, call .reset_index(drop=True) on both."


class Single:
    """The rows of one input, taken like those of a pair.

    Attributes
    ----------
    sides : tuple of (Rows, None)
    n : int
    """

    def __init__(self, rows: Rows) -> None:
        self.rows, self.n = rows, rows.shape[0]
        self.sides = ((rows, None),)

    def take(self, indices: np.ndarray) -> tuple[np.ndarray]:
        """Rows at `indices` in the order given."""
        return (self.rows.take(indices),)


class Pair:
    """Rows of x and of y that belong together; made by `pair_rows`.

    Attributes
    ----------
    x, y : Rows
        The two sides, with all their rows.
    x_index, y_index : numpy.ndarray of shape (n,) or None
        Rows of each side that make up the pairs; None when these are all rows in order.
    sides : tuple of (Rows, index)
        Both sides with their indices.
    n : int
        Number of pairs.
    notes : tuple of str
        Sentences worth telling the user, those of both sides included.
    blocks : numpy.ndarray of shape (n,) or None
        The block of each pair, counted from 0; None where neither side has blocks.
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
        """The block of each pair, counted from 0; refuses two sides that part the pairs differently."""
        of_x, of_y = (
            None if rows.blocks is None else block_codes(rows.blocks if index is None else rows.blocks[index])
            for rows, index in self.sides
        )
        if of_x is not None and of_y is not None:
            refuse_other_blocks(self.x.name, of_x, self.y.name, of_y)
        return of_y if of_x is None else of_x

    def read(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Pairs `start` to `stop`, as arrays of shape (stop - start, d) of each side."""
        return read_side(self.x, self.x_index, start, stop), self.read_y(start, stop)

    def read_y(self, start: int, stop: int) -> np.ndarray:
        """The y side of pairs `start` to `stop` alone."""
        return read_side(self.y, self.y_index, start, stop)

    def take(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pairs at `indices` in the order given."""
        return _take(self.x, self.x_index, indices), self.take_y(indices)

    def take_y(self, indices: np.ndarray) -> np.ndarray:
        """The y side of the pairs at `indices` alone."""
        return _take(self.y, self.y_index, indices)


def pair_rows(x: Rows, y: Rows) -> Pair:
    """Pair the rows of `x` and `y`: by index when both have one, by id when both have ids, by position otherwise.

    The pairs keep the order of x.
    """
    if x.index is not None and y.index is not None:
        pair = _by_index(x, y)
    elif x.ids is not None and y.ids is not None:
        pair = _by_id(x, y, x.ids, y.ids)
    else:
        pair = _by_position(x, y)
    if x.inputs_sha256 and y.inputs_sha256 and x.inputs_sha256 != y.inputs_sha256:
        pair.notes += (f"{x.name} and {y.name} are of different inputs, by their hashes, or in another order or form.",)
    pair.notes += _preprocessed_otherwise(x, y)
    return pair


def _preprocessed_otherwise(x: Rows, y: Rows) -> tuple[str, ...]:
    """A note where two models were given their inputs in different forms, as normalised and not."""
    if x.preprocess is None or y.preprocess is None or x.preprocess == y.preprocess:
        return ()
    names = {**x.preprocess, **y.preprocess}
    values = {name: (x.preprocess.get(name), y.preprocess.get(name)) for name in names}
    told = ", ".join(f"{name} {one} and {two}" for name, (one, two) in values.items() if one != two)
    return (
        f"The inputs of {x.name} and {y.name} were preprocessed differently: {told}. If both models expect the same "
        "form, extract again with the same options.",
    )


def _by_position(x: Rows, y: Rows) -> Pair:
    if x.shape[0] != y.shape[0]:
        turned = next((z for z, n in ((y, x.shape[0]), (x, y.shape[0])) if z.shape[1] == n > z.shape[0]), None)
        hint = "" if turned is None else f" {turned.name} has so many columns: if these are the samples, transpose it."
        raise InputError(
            f"{x.name} has {x.shape[0]} rows and {y.name} has {y.shape[0]}, so they cannot be paired by position. "
            f"Pass ids for both, or the same samples in the same order.{hint}"
        )
    notes: tuple[str, ...] = ()
    if x.ids is not None or y.ids is not None:
        named, unnamed = (x, y) if x.ids is not None else (y, x)
        notes = (f"Only {named.name} has ids, {unnamed.name} has none: the rows are paired by position.",)
    for rows, other in ((x, y), (y, x)):
        if rows.ids is None and rows.index is not None and not is_count(rows.index):
            notes += (f"{other.name} has no index as {rows.name} has: the rows are paired by position.",)
    return Pair(x, y, x.shape[0], notes=notes)


def _by_index(x: Rows, y: Rows) -> Pair:
    """Pairs of equal labels; where all labels are equal in order they may repeat, or be of any kind."""
    of_y = as_levels_of(y.index, x.index)
    if x.index.equals(of_y):
        return Pair(x, y, x.shape[0])
    for rows in (x, y):
        if not rows.index.is_unique:
            twice = rows.index[rows.index.duplicated()][0]
            raise InputError(
                f"The index of {rows.name} has {_shown(twice)} more than once and the indexes of {x.name} and {y.name} "
                f"differ, so the rows cannot be paired. Make its labels unique. {_POSITION}"
            )
    notes: tuple[str, ...] = ()
    at = _places(x.index, of_y)
    if not (at >= 0).any() and {x.index.inferred_type, y.index.inferred_type} == {"string", "integer"}:
        at = _places(x.index.astype(str), y.index.astype(str))
        text, numbers = (x, y) if x.index.inferred_type == "string" else (y, x)
        notes = (f"The index of {text.name} has strings, that of {numbers.name} integers: compared as strings.",)
    x_index = np.flatnonzero(at >= 0)
    if len(x_index) < 2:
        shared = f"Only one label of the index of {x.name}" if len(x_index) else f"No label of the index of {x.name}"
        raise InputError(
            f"{shared} (such as {_shown(x.index[0])}) is in the index of {y.name} (such as {_shown(y.index[0])}), so "
            f"the rows cannot be paired. Give both the same labels, or name a column of ids: ids (--ids). {_POSITION}"
        )
    return _joined(x, y, x_index, at[x_index], "index", notes)


def as_levels_of(index: Any, other: Any) -> Any:
    """An index of several levels in the order of another's, where both have names for the same levels."""
    same = index.nlevels > 1 and set(index.names) == set(other.names) and len(set(index.names)) == index.nlevels
    return index.reorder_levels(other.names) if same and index.names != other.names else index


def _places(labels: Any, among: Any) -> np.ndarray:
    """Where each label is in another index; -1 where it is not."""
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
            f"{x.name} and {y.name} share only the id {x_ids[x_index[0]].item()!r}, but at least 2 rows are needed."
        )
    return _joined(x, y, x_index, y_index, "id", notes)


def _joined(x: Rows, y: Rows, x_index: np.ndarray, y_index: np.ndarray, by: str, notes: tuple[str, ...]) -> Pair:
    n = len(x_index)
    for rows in (x, y):
        if rows.shape[0] > n:
            notes += (f"{rows.shape[0] - n} of the {rows.shape[0]} rows of {rows.name} found no partner by {by}.",)
    return Pair(x, y, n, _none_if_all(x_index, x), _none_if_all(y_index, y), notes)


def _comparable(
    x: Rows, y: Rows, x_ids: np.ndarray, y_ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    kinds = x_ids.dtype.kind, y_ids.dtype.kind
    if kinds[0] == kinds[1]:
        return x_ids, y_ids, ()
    # Also for signed against unsigned: numpy would compare those as floats and confuse large ids.
    as_text = x_ids.astype(np.str_), y_ids.astype(np.str_)
    if "U" not in kinds:
        return *as_text, ()
    text, numbers = (x, y) if kinds[0] == "U" else (y, x)
    return *as_text, (f"The ids of {text.name} are strings, those of {numbers.name} integers: compared as strings.",)


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
    """One side of pairs `start` to `stop`."""
    if index is None:
        return rows.read(start, stop)
    if not 0 <= start <= stop <= len(index):
        raise IndexError(f"Pairs {start} to {stop} were asked of {rows.name}, of which {len(index)} rows are paired.")
    part = index[start:stop]
    if len(part) and (np.diff(part) == 1).all():
        return rows.read(int(part[0]), int(part[-1]) + 1)
    return rows.take(part)


def _take(rows: Rows, index: Index, indices: np.ndarray) -> np.ndarray:
    return rows.take(indices if index is None else index[indices])
