"""Rows made by a map as they are read."""

import numpy as np

from nearid.arrays import open_rows
from nearid.arrays.mapped import MappedRows


def test_rows_are_those_of_the_source_after_the_map(rng: np.random.Generator) -> None:
    x = rng.normal(size=(50, 3))
    source = open_rows(x, ids=np.arange(50))
    rows = MappedRows("turned", source, 2, lambda block: block[:, :2] * 2)
    assert rows.shape == (50, 2) and rows.name == "turned"
    np.testing.assert_array_equal(rows.read(3, 9), 2 * x[3:9, :2])
    np.testing.assert_array_equal(rows.take(np.array([7, 1, 7])), 2 * x[[7, 1, 7], :2])
    np.testing.assert_array_equal(rows.ids, np.arange(50))
