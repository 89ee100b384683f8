"""Some rows, or some columns, of a source."""

import numpy as np

from nearid.arrays.rows import Rows


class SelectedRows(Rows):
    """Rows of a source at given places, in the order given; nothing is copied until it is read.

    Parameters
    ----------
    source : Rows
    places : ndarray of int, shape (n,)
    """

    def __init__(self, source: Rows, places: np.ndarray) -> None:
        super().__init__(source.name, (len(places), source.shape[1]), source.dtype, notes=source.notes)
        self.columns, self.is_table, self.window = source.columns, source.is_table, source.window
        self.unused, self.inputs_sha256 = source.unused, source.inputs_sha256
        self._source, self._places = source, places

    def _read(self, start: int, stop: int) -> np.ndarray:
        return self._source.take(self._places[start:stop])

    def _take(self, indices: np.ndarray) -> np.ndarray:
        return self._source.take(self._places[indices])


class SelectedColumns(Rows):
    """Columns of a source at given places.

    Parameters
    ----------
    source : Rows
    places : ndarray of int, shape (d,)
    """

    def __init__(self, source: Rows, places: np.ndarray) -> None:
        super().__init__(source.name, (source.shape[0], len(places)), source.dtype, source.ids, source.notes)
        self.index, self.is_table, self.window = source.index, source.is_table, source.window
        self.unused, self.inputs_sha256 = source.unused, source.inputs_sha256
        if source.columns is not None:
            self.columns = tuple(source.columns[at] for at in places)
        self._source, self._places = source, places

    def _read(self, start: int, stop: int) -> np.ndarray:
        return self._source.read(start, stop)[:, self._places]

    def _take(self, indices: np.ndarray) -> np.ndarray:
        return self._source.take(indices)[:, self._places]
