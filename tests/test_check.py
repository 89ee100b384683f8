"""Checks of numbers that somebody gives."""

import pytest

from nearid.check import at_least, positive
from nearid.errors import InputError


def test_good_numbers_pass():
    assert positive("kappa", 2) == 2.0 and positive("kappa", 0, zero=True) == 0.0
    assert at_least("n", 3, 3) == 3


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_numbers_that_are_not_positive_are_told(value):
    with pytest.raises(InputError, match=f"kappa is {value}, but a finite number above 0"):
        positive("kappa", value)
    if value:
        with pytest.raises(InputError, match="of at least 0"):
            positive("kappa", value, zero=True)


@pytest.mark.parametrize("value", [1, -3, 2.5])
def test_counts_that_are_too_small_or_not_whole_are_told(value):
    with pytest.raises(InputError, match=f"n is {value}, but a whole number of at least 2"):
        at_least("n", value, 2)
