"""A value with its interval."""

import math

import numpy as np
import pytest
from scipy import stats

from nearid.base.estimate import Estimate
from nearid.base.jsonable import plain
from nearid.measures.registry import Measured


def test_the_interval_of_a_mean_is_students():
    values = [0.2, 0.5, 0.9, 0.4]
    e = Estimate.over(values)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert (e.value, e.low, e.high, e.n) == (pytest.approx(0.5), pytest.approx(low), pytest.approx(high), 4)
    assert e.within(0.3, 0.6).low == 0.3 and e.within(0.3, 0.6).high == 0.6


def test_one_value_has_no_interval_and_none_has_no_mean():
    assert not Estimate.over([1.0]).has_interval and float(Estimate.over([1.0])) == 1.0
    assert np.isnan(float(Estimate.over([]))) and not Estimate(1.0, 0.0).has_interval


@pytest.mark.parametrize(
    ("half", "quarter"),
    [(Estimate(0.5, 0.4, 0.6), Estimate(0.25)), (Measured(0.5, np.eye(2)), Measured(np.float64(0.25)))],
    ids=["Estimate", "Measured"],
)
def test_a_number_works_as_a_float(half, quarter):
    assert (f"{half:.3f}", f"{half}", round(quarter, 1), float(half)) == ("0.500", str(half), 0.2, 0.5)
    assert half > 0.4 and half >= 0.5 and half < 0.6 and half <= quarter + 1 and quarter < half
    assert half == 0.5 and half != quarter and half != "0.5" and len({half, 0.5}) == 1
    worked = [1 - half, half - 1, half + quarter, 2 * half, half / 2, 1 / half, half**2, -half, abs(half), 1 + half]
    assert worked == [0.5, -0.5, 0.75, 1.0, 0.25, 2.0, 0.25, -0.5, 0.5, 1.5]
    assert {type(value) for value in worked} == {float}
    assert np.mean([half, quarter]) == 0.375 and np.array([half, quarter]).dtype == float
    assert np.float64(1) - half == 0.5 and (np.ones(2) * half).tolist() == [0.5, 0.5] and math.sqrt(quarter) == 0.5
    assert sum([half, quarter]) == 0.75 and max(half, quarter) is half and sorted([half, quarter])[0] is quarter
    with pytest.raises(TypeError):
        assert half > "0.5"


def test_estimates_are_equal_with_their_intervals():
    assert Estimate(0.5, 0.4, 0.6) == Estimate(0.5, 0.4, 0.6) != Estimate(0.5, 0.4, 0.7)
    assert Measured(0.5, np.eye(2)) == Measured(0.5, np.ones((2, 3))) == Estimate(0.5)


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
