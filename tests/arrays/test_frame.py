import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.base.errors import InputError

pd = pytest.importorskip("pandas")


def test_columns_ids_and_notes() -> None:
    frame = pd.DataFrame({"a": [1.5, 2], "who": ["x", "y"], 3: [True, False], "when": pd.to_datetime(["2020", "2021"])})
    rows = open_rows(frame, ids="who")
    assert rows.name == "table" and rows.dtype == np.float64
    np.testing.assert_array_equal(rows.read(0, 2), [[1.5, 1], [2, 0]])
    np.testing.assert_array_equal(rows.take(np.array([1, 0])), [[2, 0], [1.5, 1]])
    assert rows.ids is not None and rows.ids.tolist() == ["x", "y"]
    assert rows.notes == ("Columns of table that are not numeric are ignored: 'when'.",)
    assert open_rows(frame.set_index("who"), ids="who").ids.tolist() == ["x", "y"]  # type: ignore[union-attr]


def test_missing_values_of_nullable_columns() -> None:
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": pd.array([None, 2.5], dtype="Float64")})
    np.testing.assert_array_equal(open_rows(frame).read(0, 2), [[1, np.nan], [np.nan, 2.5]])


def test_float32_stays_and_index_columns_go() -> None:
    frame = pd.DataFrame({"Unnamed: 0": [0, 1], "a": np.ones(2, np.float32), "b": np.ones(2, np.float16)})
    rows = open_rows(frame)
    assert rows.dtype == np.float32 == rows.read(0, 1).dtype and rows.shape == (2, 2)
    assert "index written by pandas" in rows.notes[0]


def test_refused() -> None:
    frame = pd.DataFrame({"name": ["x", "y"]})
    with pytest.raises(InputError, match=r"no numeric columns"):
        open_rows(frame)
    with pytest.raises(InputError, match=r"Did you mean 'name'"):
        open_rows(frame, ids="nme")
    with pytest.raises(InputError, match=r"Leave the key out"):
        open_rows(frame, key="name")
    with pytest.raises(InputError, match=r"id of row 1 of table is None"):
        open_rows(pd.DataFrame({"a": [1, 2], "id": ["x", None]}), ids="id")
    with pytest.raises(InputError, match=r"no columns"):
        open_rows(pd.DataFrame(index=[1, 2]))
