"""Rows that are computed from other rows while they are read: a selection, a function of them, or several joined."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from nearid.arrays.labels import refuse_other_blocks
from nearid.arrays.rows import Rows
from nearid.base.errors import InputError


class SelectedRows(Rows):
    """Rows of a source at given indices, in this order. Nothing is copied before it is read."""

    def __init__(self, source: Rows, places: np.ndarray) -> None:
        super().__init__(source.name, (len(places), source.shape[1]), source.dtype, notes=source.notes)
        self.columns, self.is_table, self.window = source.columns, source.is_table, source.window
        self.titles = source.titles
        self.unused, self.inputs_sha256, self.preprocess = source.unused, source.inputs_sha256, source.preprocess
        self.blocks = None if source.blocks is None else source.blocks[places]
        self._source, self._places = source, places

    def _read(self, start: int, stop: int) -> np.ndarray:
        return self._source.take(self._places[start:stop])

    def _take(self, indices: np.ndarray) -> np.ndarray:
        return self._source.take(self._places[indices])


class MappedRows(Rows):
    """A function of the rows of a source, computed when they are read; ids, index and blocks are those of the source.

    Parameters
    ----------
    name : str
    source : Rows
    width : int
        Number of columns of the result.
    function : callable
        Array of shape (k, d) -> array of shape (k, width), row by row.
    """

    def __init__(self, name: str, source: Rows, width: int, function: Callable[[np.ndarray], np.ndarray]) -> None:
        super().__init__(name, (source.shape[0], width), source.dtype, source.ids)
        self.window, self.index = source.window, source.index
        self.blocks, self.origin = source.blocks, source.origin
        self._source, self._function = source, function

    def _read(self, start: int, stop: int) -> np.ndarray:
        return self._function(self._source.read(start, stop))

    def _take(self, indices: np.ndarray) -> np.ndarray:
        return self._function(self._source.take(indices))


class SelectedColumns(MappedRows):
    """Columns of a source at given indices."""

    def __init__(self, source: Rows, places: np.ndarray) -> None:
        super().__init__(source.name, source, len(places), partial(_columns, places=places))
        self.notes, self.is_table = source.notes, source.is_table
        self.unused, self.inputs_sha256, self.preprocess = source.unused, source.inputs_sha256, source.preprocess
        if source.columns is not None:
            self.columns = tuple(source.columns[at] for at in places)
        if source.titles is not None:
            self.titles = tuple(source.titles[at] for at in places)


def _columns(block: np.ndarray, places: np.ndarray) -> np.ndarray:
    chosen: np.ndarray = block[:, places]
    return chosen


class JoinedRows(Rows):
    """Columns of several sources with the same samples, side by side.

    Parameters
    ----------
    name : str
    parts : sequence of Rows
        Sources with equally many rows, in the same order. If they have ids or an index, these must be equal. The
        result keeps ids, index, blocks and notes. If only some parts have an index or blocks, the others use theirs.

    Attributes
    ----------
    columns_of : list of slice
        The columns of each part.
    """

    def __init__(self, name: str, parts: Sequence[Rows]) -> None:
        first = parts[0]
        indexed = next((part for part in parts if part.index is not None), first)
        for other in parts[1:]:
            if other.shape[0] != first.shape[0]:
                raise InputError(
                    f"{other.name} has {other.shape[0]} rows and {first.name} has {first.shape[0]}, but all layers of "
                    "a model must be computed from the same inputs. Give one row per input in each layer."
                )
            if (other.ids is None) != (first.ids is None) or not np.array_equal(other.ids, first.ids):  # type: ignore[arg-type]
                raise InputError(
                    f"The ids of {other.name} and {first.name} differ or are in a different order. Give both the same "
                    "rows in the same order."
                )
            if other.index is not None and not other.index.equals(indexed.index):
                raise InputError(
                    f"The indexes of {other.name} and {indexed.name} differ or are in a different order, but all "
                    "layers of a model must have the same rows. Reorder one of them with .loc[other.index]."
                )
        blocked = [part for part in parts if part.blocks is not None]
        for other in blocked[1:]:
            refuse_other_blocks(blocked[0].name, blocked[0].blocks, other.name, other.blocks)
        ends = np.cumsum([0, *(part.shape[1] for part in parts)]).tolist()
        dtype = np.result_type(*(part.dtype for part in parts))
        notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
        super().__init__(name, (first.shape[0], ends[-1]), dtype, first.ids, notes)
        self.index, self.inputs_sha256, self.preprocess = indexed.index, first.inputs_sha256, first.preprocess
        self.blocks = blocked[0].blocks if blocked else None
        self.window = max(part.window for part in parts)
        self.columns_of = [slice(a, b) for a, b in pairwise(ends)]
        self._parts = list(parts)

    def _read(self, start: int, stop: int) -> np.ndarray:
        return np.hstack([part.read(start, stop) for part in self._parts])

    def _take(self, indices: np.ndarray) -> np.ndarray:
        return np.hstack([part.take(indices) for part in self._parts])
