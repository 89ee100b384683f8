"""Rows made of other rows."""

import numpy as np
import pytest

from nearid.arrays import open_rows, pair_rows
from nearid.arrays.derived import JoinedRows, MappedRows, SelectedColumns, SelectedRows
from nearid.base.errors import InputError

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
        assert "The hashes of the inputs of" in pair_rows(*selected).notes[0]


def test_rows_are_those_of_the_source_after_the_map(rng: np.random.Generator) -> None:
    x = rng.normal(size=(50, 3))
    source = open_rows(x, ids=np.arange(50))
    rows = MappedRows("turned", source, 2, lambda block: block[:, :2] * 2)
    assert rows.shape == (50, 2) and rows.name == "turned"
    np.testing.assert_array_equal(rows.read(3, 9), 2 * x[3:9, :2])
    np.testing.assert_array_equal(rows.take(np.array([7, 1, 7])), 2 * x[[7, 1, 7], :2])
    np.testing.assert_array_equal(rows.ids, np.arange(50))


def test_columns_side_by_side(rng):
    a, b = rng.normal(size=(9, 2)).astype(np.float32), rng.normal(size=(9, 3))
    joined = JoinedRows("both", [open_rows(a, ids=range(9)), open_rows(b, ids=range(9))])
    whole = np.hstack([a, b])
    assert joined.dtype == np.float64 and joined.columns_of == [slice(0, 2), slice(2, 5)]
    np.testing.assert_array_equal(joined.read(2, 7), whole[2:7])
    np.testing.assert_array_equal(joined.take(np.array([8, 0, 3])), whole[[8, 0, 3]])
    assert joined.ids.tolist() == list(range(9))


def test_what_does_not_belong_together_is_told(rng):
    a = open_rows(rng.normal(size=(9, 2)), name="a", ids=range(9))
    with pytest.raises(InputError, match="b has 8 rows and a has 9"):
        JoinedRows("both", [a, open_rows(rng.normal(size=(8, 2)), name="b")])
    for ids in (None, range(1, 10)):
        with pytest.raises(InputError, match="The ids of b and a differ"):
            JoinedRows("both", [a, open_rows(rng.normal(size=(9, 2)), name="b", ids=ids)])


def test_frames_in_different_orders_are_refused(rng):
    pd = pytest.importorskip("pandas")
    a = pd.DataFrame(rng.normal(size=(9, 2)), index=pd.date_range("2020-01-01", periods=9))
    assert JoinedRows("both", [open_rows(a), open_rows(a)]).index.equals(a.index)
    with pytest.raises(InputError, match=r"The indexes of .* differ or are in a different order"):
        JoinedRows("both", [open_rows(a), open_rows(a[::-1])])


def test_an_index_and_notes_of_any_part_are_kept(rng):
    pd = pytest.importorskip("pandas")
    a = open_rows(pd.DataFrame(rng.normal(size=(9, 2)), index=pd.date_range("2020-01-01", periods=9)))
    b = open_rows(pd.DataFrame({"x": np.arange(9.0), "text": list("abcdefghi")}), name="b")
    b.index = None
    joined = JoinedRows("both", [b, a])
    assert joined.index.equals(a.index) and joined.notes == b.notes and b.notes
