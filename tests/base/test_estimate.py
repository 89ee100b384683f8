"""A value with its interval."""

import numpy as np
import pytest
from scipy import stats

from nearid.base.estimate import Estimate
from nearid.base.jsonable import plain


def test_the_interval_of_a_mean_is_students():
    values = [0.2, 0.5, 0.9, 0.4]
    e = Estimate.over(values)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert (e.value, e.low, e.high, e.n) == (pytest.approx(0.5), pytest.approx(low), pytest.approx(high), 4)
    assert e.within(0.3, 0.6).low == 0.3 and e.within(0.3, 0.6).high == 0.6


def test_one_value_has_no_interval_and_none_has_no_mean():
    assert not Estimate.over([1.0]).has_interval and float(Estimate.over([1.0])) == 1.0
    assert np.isnan(float(Estimate.over([]))) and not Estimate(1.0, 0.0).has_interval


def test_only_what_is_known_is_plain_data():
    assert plain({"e": Estimate(1.0)}) == {"e": {"value": 1.0, "low": None, "high": None}}
    assert plain(Estimate(1.0, 0.5, 2.0, 0.1, "rows, bootstrap", 3)) == {
        "value": 1.0,
        "low": 0.5,
        "high": 2.0,
        "chance": 0.1,
        "of": "rows, bootstrap",
        "n": 3,
    }
