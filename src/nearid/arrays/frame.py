"""pandas DataFrames, without importing pandas."""

from typing import Any

import numpy as np

from nearid.arrays.rows import Rows
from nearid.arrays.table import Column, features, id_position, refuse_key


class FrameRows(Rows):
    """Numeric columns of a DataFrame, which is kept as it is."""

    def __init__(self, name: str, frame: Any, ids: str | None = None) -> None:
        columns = [Column(str(label), _is_numeric(dtype)) for label, dtype in frame.dtypes.items()]
        names = [column.name for column in columns]
        indexed = names_index(frame, ids)
        id_at = None if indexed else id_position(name, names, ids)
        chosen = features(name, columns, id_at, lambda: np.asarray(frame.iloc[:, 0]))
        stored = [_stored(frame.dtypes.iloc[at]) for at in chosen.positions]
        id_values = frame.index if indexed else None if id_at is None else frame.iloc[:, id_at]
        super().__init__(
            name,
            (len(frame), len(chosen.positions)),
            np.result_type(*stored),
            index_ids(frame.index) if ids is None else np.asarray(id_values),
            chosen.notes,
        )
        self.index = labels(frame.index) if ids is None else None
        self.is_table = True
        self._frame = frame
        self._positions = chosen.positions
        self.columns = tuple(str(frame.columns[at]) for at in chosen.positions)
        self.unused = chosen.unused

    def _read(self, start: int, stop: int) -> np.ndarray:
        return self._to_numpy(self._frame.iloc[start:stop, self._positions])

    def _take(self, indices: np.ndarray) -> np.ndarray:
        return self._to_numpy(self._frame.iloc[indices, self._positions])

    def _to_numpy(self, frame: Any) -> np.ndarray:
        array: np.ndarray = frame.to_numpy(dtype=self.dtype, na_value=np.nan)
        return array


def open_frame(frame: Any, name: str, key: str | None, ids: str | None) -> FrameRows:
    """Open the numeric columns of a DataFrame."""
    refuse_key(name, key)
    return FrameRows(name, frame, ids)


def names_index(frame: Any, ids: str | None) -> bool:
    """Whether ids given by name are the index of a DataFrame; a column of that name comes first."""
    return ids is not None and ids == frame.index.name and ids not in map(str, frame.columns)


def labels(index: Any) -> Any:
    """A pandas index whose labels are equal only where they are the same value."""
    # pandas would look a number up in the interval that holds it, and a category by its place.
    special = type(index).__name__ in ("CategoricalIndex", "IntervalIndex")
    return index.astype(object) if special else index


def is_count(index: Any) -> bool:
    """Whether an index only counts the rows from 0, as that of a new DataFrame does."""
    return index.nlevels == 1 and index.dtype.kind in "iu" and np.array_equal(index, np.arange(len(index)))


def index_ids(index: Any) -> np.ndarray | None:
    """The labels of an index as ids: where they are distinct strings or integers, and more than a count."""
    plain = labels(index)
    usable = plain.inferred_type in ("string", "integer") and plain.nlevels == 1 and plain.is_unique
    return np.asarray(plain) if usable and "" not in plain and not is_count(index) else None


def _is_numeric(dtype: Any) -> bool:
    return dtype.kind in "fiub"


def _stored(dtype: Any) -> np.dtype[Any]:
    dtype = getattr(dtype, "subtype", dtype)  # that of the values of a sparse column
    small_float = dtype.kind == "f" and dtype.itemsize <= 4
    return np.dtype(np.float32 if small_float else np.float64)
