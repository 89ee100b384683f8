import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.base.errors import InputError


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
        (object(), "is a object, but rows of numbers"),
        ({"x": [[1]]}, "is a dict.*Pass one of its arrays"),
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
    with pytest.raises(InputError, match=r"no 'x' to take ids from. In Python pass the ids themselves"):
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
