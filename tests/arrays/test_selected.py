"""Some rows or columns of a source, read like any rows."""

import numpy as np

from nearid.arrays import open_rows, pair_rows
from nearid.arrays.selected import SelectedColumns, SelectedRows

X = np.arange(24.0).reshape(8, 3)


def test_rows_in_the_order_given():
    rows = SelectedRows(open_rows(X), np.array([5, 0, 3]))
    assert rows.shape == (3, 3)
    assert np.array_equal(rows.read(1, 3), X[[0, 3]])
    assert np.array_equal(rows.take(np.array([2, 0])), X[[3, 5]])


def test_columns_keep_their_names_and_ids():
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=list("stuvwxyz"))
    rows = SelectedColumns(open_rows(frame), np.array([2, 0]))
    assert rows.columns == ("c", "a") and rows.ids[0] == "s"
    assert np.array_equal(rows.read(0, 2), X[:2, [2, 0]])
    assert np.array_equal(rows.take(np.array([7])), X[[7]][:, [2, 0]])


def test_a_selection_is_still_of_its_inputs():
    sources = [open_rows(X), open_rows(X + 1)]
    for rows, inputs in zip(sources, ("1f", "2e"), strict=True):
        rows.inputs_sha256 = inputs
    columns = [open_rows(rows, exclude="1") for rows in sources]
    rows = [SelectedRows(source, np.array([5, 0, 3])) for source in sources]
    for selected in (columns, rows):
        assert "are of different inputs, by their hashes" in pair_rows(*selected).notes[0]
