"""Intervals over seeds against scipy's own."""

import math

import numpy as np
import pytest
from scipy import stats

from nearid.experiments.estimate import Estimate


@pytest.mark.parametrize("n", [2, 3, 10])
def test_students_interval(rng, n):
    x = rng.normal(3, 2, size=n)
    found = Estimate.over(x)
    expected = stats.t.interval(0.95, n - 1, loc=x.mean(), scale=stats.sem(x))
    np.testing.assert_allclose((found.low, found.high), expected, rtol=1e-12)
    assert found.n == n and found.mean == x.mean()


def test_too_few_values_have_no_interval():
    one, none = Estimate.over([2.5]), Estimate.over([])
    assert (one.n, one.mean) == (1, 2.5) and math.isnan(one.low) and math.isnan(one.high)
    assert none.n == 0 and math.isnan(none.mean)
