"""Rows of a source after a map, made as they are read."""

from collections.abc import Callable

import numpy as np

from nearid.arrays.rows import Rows


class MappedRows(Rows):
    """Rows that a function makes of the rows of a source, block by block.

    Parameters
    ----------
    name : str
    source : Rows
        Its ids and its index are kept.
    width : int
        Columns of the result.
    function : callable
        Array of shape (k, d) -> array of shape (k, width), row by row.
    """

    def __init__(self, name: str, source: Rows, width: int, function: Callable[[np.ndarray], np.ndarray]) -> None:
        super().__init__(name, (source.shape[0], width), source.dtype, source.ids)
        self.window, self.index = source.window, source.index
        self._source, self._function = source, function

    def _read(self, start: int, stop: int) -> np.ndarray:
        return self._function(self._source.read(start, stop))

    def _take(self, indices: np.ndarray) -> np.ndarray:
        return self._function(self._source.take(indices))
