import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.arrays.joined import JoinedRows
from nearid.base.errors import InputError


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
        with pytest.raises(InputError, match="different ids"):
            JoinedRows("both", [a, open_rows(rng.normal(size=(9, 2)), name="b", ids=ids)])


def test_frames_in_different_orders_are_refused(rng):
    pd = pytest.importorskip("pandas")
    a = pd.DataFrame(rng.normal(size=(9, 2)), index=pd.date_range("2020-01-01", periods=9))
    assert JoinedRows("both", [open_rows(a), open_rows(a)]).index.equals(a.index)
    with pytest.raises(InputError, match="different indexes, or in another order"):
        JoinedRows("both", [open_rows(a), open_rows(a[::-1])])


def test_an_index_and_notes_of_any_part_are_kept(rng):
    pd = pytest.importorskip("pandas")
    a = open_rows(pd.DataFrame(rng.normal(size=(9, 2)), index=pd.date_range("2020-01-01", periods=9)))
    b = open_rows(pd.DataFrame({"x": np.arange(9.0), "text": list("abcdefghi")}), name="b")
    b.index = None
    joined = JoinedRows("both", [b, a])
    assert joined.index.equals(a.index) and joined.notes == b.notes and b.notes
