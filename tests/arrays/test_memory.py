"""Rows in memory: arrays, tensors, DataFrames of pandas, and of polars by a stand-in that gives a pyarrow table."""

import numpy as np
import pyarrow as pa
import pytest

from nearid import InputError, compare
from nearid.arrays import open_columns, open_rows


def test_arrays_are_kept_and_cannot_be_changed_through_blocks(matrix: np.ndarray) -> None:
    rows = open_rows(matrix)
    block = rows.read(3, 9)
    assert np.shares_memory(block, matrix) and rows.name == "array"
    with pytest.raises(ValueError, match=r"read-only"):
        block += 1
    assert matrix.flags.writeable


def test_lists_and_array_likes(matrix: np.ndarray) -> None:
    class Like:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return matrix

    np.testing.assert_array_equal(open_rows(Like()).read(0, 37), matrix)
    np.testing.assert_array_equal(open_rows([[1, 2], [3, 4]]).read(0, 2), [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    "source, message",
    [
        ([[1, 2], [3]], "rows of equal length"),
        (3.5, "is a float, but rows of numbers"),
        (object(), "is an object, but rows of numbers"),
        ({"x": [[1]]}, "is a dict.*Pass one of the arrays in it"),
        (np.ma.masked_array(np.zeros((3, 2)), mask=True), r"masked array.*x\.filled"),
    ],
)
def test_refused(source: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_rows(source)


def test_sparse_matrices_are_refused() -> None:
    from scipy.sparse import csr_array

    with pytest.raises(InputError, match=r"x\.toarray\(\)"):
        open_rows(csr_array(np.eye(3)))


def test_array_likes_that_do_not_fit_into_memory_are_refused() -> None:
    class Huge:
        shape = (10**12, 100)
        dtype = np.dtype("f4")

        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            raise AssertionError("loaded")

    with pytest.raises(InputError, match=r"needs 400 TB of memory.*by path"):
        open_rows(Huge())


def test_names_are_refused(matrix: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"key='x' was given"):
        open_rows(matrix, key="x")
    with pytest.raises(InputError, match=r"so it has no ids named 'x'. In Python, pass the ids themselves"):
        open_rows(matrix, ids="x")


class TestTensors:
    torch = pytest.importorskip("torch")

    @pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64", "int64", "bool"])
    def test_dtypes(self, dtype: str) -> None:
        torch = self.torch
        x = torch.tensor([[0.0, 1], [1, 0], [1, 1]]).to(getattr(torch, dtype))
        rows = open_rows(x)
        assert rows.name == "tensor"
        assert rows.dtype == (np.float32 if dtype in ("bfloat16", "float16", "float32") else np.float64)
        np.testing.assert_array_equal(rows.read(1, 3), [[1, 0], [1, 1]])
        np.testing.assert_array_equal(rows.take(np.array([2, 0])), [[1, 1], [0, 1]])
        assert rows.read(0, 2).dtype == rows.dtype

    def test_gradients_parameters_and_strides(self) -> None:
        x = self.torch.nn.Parameter(self.torch.arange(12.0).reshape(3, 4))
        np.testing.assert_array_equal(open_rows(x).read(0, 3), x.detach().numpy())
        np.testing.assert_array_equal(open_rows(x.T).read(1, 3), x.detach().numpy().T[1:3])

    def test_types_whose_names_others_taught_numpy_are_refused_alike(self) -> None:
        pytest.importorskip("ml_dtypes", reason="comes with the extra onnx")
        with pytest.raises(InputError, match=r"float8.*x\.to\(torch\.float32\)"):
            open_rows(self.torch.ones(3, 3).to(self.torch.float8_e4m3fn))

    @pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
    def test_refused(self) -> None:
        torch = self.torch
        with pytest.raises(InputError, match=r"sparse tensor.*to_dense"):
            open_rows(torch.eye(3).to_sparse())
        with pytest.raises(InputError, match=r"nested tensor.*to_padded_tensor"):
            open_rows(torch.nested.nested_tensor([torch.zeros(2, 3), torch.zeros(4, 3)]))
        with pytest.raises(InputError, match=r"meta device"):
            open_rows(torch.empty(3, 3, device="meta"))
        with pytest.raises(InputError, match=r"float8.*x\.to\(torch\.float32\)"):
            open_rows(torch.ones(3, 3).to(torch.float8_e4m3fn))
        with pytest.raises(InputError, match=r"x\.reshape\(-1, 1\)"):
            open_rows(torch.zeros(3))
        with pytest.raises(InputError, match=r"a tensor without named parts"):
            open_rows(torch.eye(3), key="x")


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


def test_frames_refused() -> None:
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
