"""Factors as codes, and what is said about those that cannot be used."""

import numpy as np
import pytest

from nearid import InputError
from nearid.measures.codes import encode_factors


def test_any_values_that_repeat_are_coded_in_order():
    table = np.array([["b", 10], ["a", -3], ["b", -3]], dtype=object)
    codes = encode_factors(table, 3)
    np.testing.assert_array_equal(codes, [[1, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(encode_factors(["x", "y", "x"], 3), [[0, 1, 0]])


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([[1], [1], [1]], "Factor 0 is constant"),
        ([[0, 1], [0, 2], [1, 3]], "Factor 1 has another value in each of the 3 rows"),
        ([[0.0], [np.nan], [0.0]], "Factor 0 has no value at row 1"),
        (np.array([["a"], ["a"], [None]], dtype=object), "Factor 0 has no value at row 2"),
        (np.array([["a"], ["a"], [1]], dtype=object), "mixes values"),
        ([[0], [1]], "3 rows and the factors 2"),
        (np.zeros((3, 2, 2)), "shape"),
        (np.zeros((3, 0)), "shape"),
    ],
)
def test_unusable_factors_are_refused(factors, message):
    with pytest.raises(InputError, match=message):
        encode_factors(factors, 3)
