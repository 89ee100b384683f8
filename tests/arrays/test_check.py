import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.base.errors import InputError


@pytest.mark.parametrize(
    "array, message",
    [
        (np.zeros(5), r"shape \(5,\).*x\.reshape\(-1, 1\)"),
        (np.zeros((10, 7, 5)), r"reshape\(len\(x\), -1\) to \(10, 35\).*x\.mean\(axis=1\) to \(10, 5\)"),
        (np.zeros((1, 5)), "at least 2 rows"),
        (np.zeros((0, 5)), "at least 2 rows"),
        (np.zeros((5, 0)), "at least 1 column"),
        (np.zeros((5, 2), complex), r"dtype complex128.*x\.real, x\.imag"),
        (np.full((5, 2), "a"), "dtype <U1.*strings"),
        (np.full((5, 2), None), "dtype object"),
        (np.zeros((5, 2), "M8[s]"), "dtype datetime64"),
        (np.zeros((5, 2), [("a", "f4")]), "structured_to_unstructured"),
    ],
)
def test_refused(array: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_rows(array)
    with pytest.raises(InputError, match=r"^latents "):
        open_rows(array, name="latents")


@pytest.mark.parametrize(
    "stored, expected",
    [
        ("f2", "f4"),
        ("f4", "f4"),
        (">f4", "f4"),
        ("f8", "f8"),
        (">f8", "f8"),
        ("g", "f8"),
        ("i1", "f8"),
        ("u8", "f8"),
        ("?", "f8"),
    ],
)
def test_delivered_dtype(stored: str, expected: str) -> None:
    x = np.array([[0, 1], [1, 0], [1, 1]], dtype=stored)
    rows = open_rows(x)
    assert rows.dtype == np.dtype(expected) == rows.read(0, 2).dtype == rows.take(np.array([2, 0])).dtype
    np.testing.assert_array_equal(rows.read(0, 3), [[0, 1], [1, 0], [1, 1]])
