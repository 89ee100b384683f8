import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.base.errors import InputError


@pytest.mark.parametrize(
    "given, expected",
    [
        (["a", "b"], np.array(["a", "b"])),
        ([b"a", "\u00e9".encode()], np.array(["a", "\u00e9"])),
        (np.array(["a", b"b"], object), np.array(["a", "b"])),
        ([1, 2], np.array([1, 2])),
        (np.array([1, 2], "u2"), np.array([1, 2])),
        (np.array([1, 2], object), np.array([1, 2])),
        (np.array([1, 2**64 - 1], "u8"), np.array([1, 2**64 - 1], "u8")),
        (np.array([1, 2**70], object), np.array(["1", str(2**70)])),
    ],
)
def test_kinds(given: object, expected: np.ndarray) -> None:
    ids = open_rows(np.zeros((2, 1)), ids=given).ids
    assert ids is not None and ids.dtype.kind == expected.dtype.kind
    np.testing.assert_array_equal(ids, expected)


@pytest.mark.parametrize(
    "given, message",
    [
        ([1, 2, 3], r"shape \(3,\), but one id for each of its 2 rows"),
        ([[1], [2]], r"shape \(2, 1\)"),
        ([1.0, 2.0], "dtype float64, but strings or integers"),
        ([True, False], "dtype bool"),
        (np.array(["a", None], object), "id of row 1 of array is None"),
        (np.array([1, "a"], object), "id of row 0 of array is 1"),
        (["a", ""], "id of row 1 of array is ''"),
        ([b"\xff", b"a"], "not UTF-8"),
        (np.array([b"\xff", "a"], object), "not UTF-8"),
    ],
)
def test_refused(given: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_rows(np.zeros((2, 1)), ids=given)
