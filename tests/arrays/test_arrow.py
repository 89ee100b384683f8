"""polars frames, by a stand-in that gives what polars gives: a pyarrow table."""

import numpy as np
import pyarrow as pa
import pytest

from nearid import InputError, compare
from nearid.arrays import open_columns, open_rows


class DataFrame:
    __module__ = "polars.dataframe.frame"

    def __init__(self, columns):
        self.columns = columns

    def to_arrow(self):
        return pa.table(self.columns)


class Series:
    __module__ = "polars.series.series"

    def __init__(self, name, values):
        self.name, self.values = name, values

    def alias(self, name):
        return Series(name, self.values)

    def to_frame(self):
        return DataFrame({self.name: self.values})


@pytest.fixture(params=["stand-in", "polars"])
def polars(request):
    if request.param == "polars":
        return pytest.importorskip("polars")
    return type("polars", (), {"DataFrame": DataFrame, "Series": Series})


def test_numbers_text_and_ids(polars):
    frame = polars.DataFrame({"a": [1.5, None], "b": [True, False], "who": ["x", "y"], "c": [3, 4]})
    rows = open_rows(frame, ids="who")
    assert rows.columns == ("a", "b", "c") and rows.ids.tolist() == ["x", "y"] and rows.name == "table"
    np.testing.assert_array_equal(rows.read(0, 2), [[1.5, 1, 3], [np.nan, 0, 4]])
    assert open_rows(frame, exclude="c").columns == ("a", "b")
    assert "'who'" in open_rows(frame).notes[0]
    with pytest.raises(InputError, match="Did you mean 'who'"):
        open_rows(frame, ids="whom")


def test_factors_keep_names_and_text(polars):
    columns = open_columns(polars.DataFrame({"shape": ["cube", "ball"], "size": [1.5, 2.0]}))
    assert columns.values["shape"].tolist() == ["cube", "ball"] and columns.values["size"].tolist() == [1.5, 2]
    assert open_columns(polars.Series("size", [1.5, 2.0])).values["size"].tolist() == [1.5, 2]


def test_frames_are_paired_by_a_column_of_ids(rng, polars):
    x = rng.normal(size=(200, 2))
    order = rng.permutation(200)
    one = polars.DataFrame({"u": x[:, 0], "v": x[:, 1], "cell": np.arange(200)})
    two = polars.DataFrame({"u": -x[order, 0], "v": x[order, 1], "cell": order})
    assert compare(one, two, ids="cell", permutations=1).verdict.group == "permutation"
