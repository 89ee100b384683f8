"""Intervals over seeds against scipy's own."""

import math

import numpy as np
import pytest
from scipy import stats

from nearid.lab.framework.estimate import Estimate


@pytest.mark.parametrize("n", [2, 3, 10])
def test_students_interval(rng, n):
    x = rng.normal(3, 2, size=n)
    found = Estimate.over(x)
    expected = stats.t.interval(0.95, n - 1, loc=x.mean(), scale=stats.sem(x))
    np.testing.assert_allclose((found.low, found.high), expected, rtol=1e-12)
    assert found.n == n and found.mean == x.mean()


def test_an_interval_is_cut_to_a_range_and_the_rest_stays():
    found = Estimate(3, 0.9, 0.7, 1.1)
    assert found.within(-math.inf, 1) == Estimate(3, 0.9, 0.7, 1) and found.within(0.8, 2) == Estimate(3, 0.9, 0.8, 1.1)
    assert math.isnan(Estimate.over([2.5]).within(0, 1).low) and Estimate.over([2.5]).within(0, 1).mean == 2.5


def test_too_few_values_have_no_interval():
    one, none = Estimate.over([2.5]), Estimate.over([])
    assert (one.n, one.mean) == (1, 2.5) and math.isnan(one.low) and math.isnan(one.high)
    assert none.n == 0 and math.isnan(none.mean)
