"""Factors: laws of draws, grids, their codes, and values that are refused."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from nearid.base.errors import InputError
from nearid.lab.processes.images.factors import (
    Factor,
    category,
    circle,
    draw_factors,
    grid_codes,
    grid_size,
    grid_values,
    interval,
)

FACTORS = (category("shape", 3), interval("x", -1.0, 3.0, 5), circle("turn", 2.0, 4))


def test_draws_are_uniform_independent_and_have_their_deviation(rng):
    z = draw_factors(FACTORS, 40_000, rng)
    assert stats.chisquare(np.bincount(z[:, 0].astype(int))).pvalue > 1e-3
    assert stats.kstest(z[:, 1], stats.uniform(-1, 4).cdf).pvalue > 1e-3
    assert stats.kstest(z[:, 2], stats.uniform(0, 2).cdf).pvalue > 1e-3
    np.testing.assert_allclose(z.std(axis=0), [f.deviation for f in FACTORS], rtol=0.02)
    assert np.abs(np.corrcoef(z.T) - np.eye(3)).max() < 0.03


def test_values_on_the_grid():
    np.testing.assert_array_equal(FACTORS[0].values, [0, 1, 2])
    np.testing.assert_array_equal(FACTORS[1].values, [-1, 0, 1, 2, 3])
    # The end of a turn is its start, and comes once.
    np.testing.assert_array_equal(FACTORS[2].values, [0, 0.5, 1, 1.5])
    later = category("shape", 2, 1)
    np.testing.assert_array_equal(later.values, [1, 2])
    assert set(later.draw(50, np.random.default_rng(0))) == {1, 2}
    assert [f.continuous for f in FACTORS] == [False, True, True]


def test_the_grid_has_every_combination_once_and_the_last_factor_changes_first():
    codes = grid_codes(FACTORS, np.arange(grid_size(FACTORS)))
    assert len(codes) == 60 == len(np.unique(codes, axis=0))
    np.testing.assert_array_equal(codes[:5, 2], [0, 1, 2, 3, 0])
    values = grid_values(FACTORS, codes)
    np.testing.assert_array_equal(values[-1], [2, 3, 1.5])


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 10_000))
def test_codes_are_the_digits_of_the_index(counts, draw):
    factors = [interval(f"f{i}", 0, 1, c) for i, c in enumerate(counts)]
    index = draw % grid_size(factors)
    (codes,) = grid_codes(factors, [index])
    back = 0
    for code, count in zip(codes, counts, strict=True):
        back = back * count + int(code)
    assert back == index


def test_what_cannot_be_is_told(rng):
    with pytest.raises(InputError, match="x has the range 1 to 0"):
        interval("x", 1, 0, 3)
    with pytest.raises(InputError, match="number of values of x is 0"):
        Factor("x", "interval", 0, 1, 0)
    with pytest.raises(InputError, match=r"3 kinds from 0 to 1: use category\(\)"):
        Factor("shape", "category", 0, 1, 3)
    with pytest.raises(InputError, match="size is 0"):
        draw_factors(FACTORS, 0, rng)
    with pytest.raises(InputError, match="runs from 0 to 60, but the grid has points 0 to 59"):
        grid_codes(FACTORS, [0, 60])
    with pytest.raises(InputError, match="a 1-D array of whole numbers"):
        grid_codes(FACTORS, [0.5])


@pytest.mark.parametrize(
    ("factor", "value", "message"),
    [
        (FACTORS[0], 3, "shape is 3, but it runs from 0 to 2"),
        (FACTORS[0], 0.5, "not whole"),
        (FACTORS[1], 3.05, "x is 3.05, but it runs from -1 to 3"),
        (FACTORS[1], np.nan, "not finite"),
    ],
)
def test_values_that_a_factor_cannot_have(factor, value, message):
    with pytest.raises(InputError, match=message):
        factor.check(np.array([1.0, value]))


def test_a_little_beyond_the_ends_and_any_turn_are_allowed():
    FACTORS[1].check(np.array([-1.03, 3.03]))
    FACTORS[2].check(np.array([-7.0, 50.0]))
