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
        indexed = ids is not None and ids == frame.index.name and ids not in names
        id_at = None if indexed else id_position(name, names, ids)
        chosen = features(name, columns, id_at, lambda: np.asarray(frame.iloc[:, 0]))
        stored = [_stored(frame.dtypes.iloc[at]) for at in chosen.positions]
        indexed = indexed or (ids is None and names_rows(frame.index))
        id_values = frame.index if indexed else None if id_at is None else frame.iloc[:, id_at]
        super().__init__(
            name,
            (len(frame), len(chosen.positions)),
            np.result_type(*stored),
            None if id_values is None else np.asarray(id_values),
            chosen.notes,
        )
        self._frame = frame
        self._positions = chosen.positions
        self.columns = tuple(str(frame.columns[at]) for at in chosen.positions)

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


def names_rows(index: Any) -> bool:
    """Whether an index was given to name the rows: distinct strings or integers, and more than a count."""
    counts = type(index).__name__ == "RangeIndex"
    named = index.dtype.kind in "iu" or index.inferred_type == "string"
    return not counts and named and index.is_unique and index.nlevels == 1


def _is_numeric(dtype: Any) -> bool:
    return dtype.kind in "fiub"


def _stored(dtype: Any) -> np.dtype[Any]:
    small_float = dtype.kind == "f" and dtype.itemsize <= 4
    return np.dtype(np.float32 if small_float else np.float64)
