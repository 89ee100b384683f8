"""Constants from stretches: closed forms, brute force over scales, coverage of what is claimed of any distribution."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import pdist
from scipy.stats import ortho_group

from nearid.base.errors import InputError
from nearid.geometry.constants import (
    Constants,
    Isometry,
    Pairwise,
    best_scale,
    distribution,
    maximum_of_half,
    scale_free,
    two_sided,
)

stretches = arrays(np.float64, (12, 2), elements=st.floats(0.01, 100)).map(lambda a: np.sort(a, axis=1))


def test_the_larger_side_counts():
    np.testing.assert_allclose(two_sided(np.array([0.5, 1, 2]), np.array([1, 3, 2])), [2, 3, 2])
    assert two_sided(0.0, 2.0) == np.inf and scale_free(0.0, 2.0) == np.inf
    assert scale_free(0.5, 8.0) == 4


@given(stretches)
def test_the_best_scale_is_the_one_a_search_finds(pairs):
    least, greatest = pairs.T

    def mean(log_scale):
        return two_sided(np.exp(log_scale) * least, np.exp(log_scale) * greatest).mean()

    found = minimize_scalar(mean, bounds=(-6, 6), method="bounded", options={"xatol": 1e-10})
    assert mean(np.log(best_scale(least, greatest))) <= found.fun * (1 + 1e-9)


@given(stretches)
def test_no_scale_beats_the_scale_free_maximum(pairs):
    least, greatest = pairs.T
    c = Constants.of(least, greatest)
    scales = np.append(np.geomspace(1e-3, 1e3, 500), 1 / np.sqrt(least.min() * greatest.max()))
    worst = np.array([two_sided(s * least, s * greatest).max() for s in scales])
    assert worst.min() == pytest.approx(c.scale_free) and (worst >= c.scale_free * (1 - 1e-12)).all()
    assert c.scaled.mean.value <= c.local.mean.value * (1 + 1e-12)
    assert c.scale_free <= c.local.maximum.value * (1 + 1e-12)


@given(stretches, st.floats(0.01, 100))
def test_units_of_the_latents_change_the_scale_alone(pairs, unit):
    c, other = Constants.of(*pairs.T), Constants.of(*(unit * pairs.T))
    assert other.scale_free == pytest.approx(c.scale_free)
    assert other.scaled.mean.value == pytest.approx(c.scaled.mean.value)


def test_the_expected_maximum_of_half_is_the_mean_over_all_halves(rng):
    for n in (2, 5, 8):
        values = np.sort(rng.exponential(size=n))
        halves = [max(half) for half in combinations(values, (n + 1) // 2)]
        assert maximum_of_half(values) == pytest.approx(np.mean(halves))
    assert np.isfinite(maximum_of_half(np.ones(100_000)))


def test_intervals_cover_the_truth_of_a_heavy_tailed_distribution():
    rng = np.random.default_rng(3)
    runs = [distribution(1 + rng.pareto(3, 400)) for _ in range(400)]
    # P(1 + Pareto > x) = x^-3, with mean 3/2.
    for share in (0.05, 0.5, 0.95):
        truth = (1 - share) ** (-1 / 3)
        covered = np.mean([d.quantiles[share].low <= truth <= d.quantiles[share].high for d in runs])
        assert 0.93 <= covered <= 0.99, share
    assert 0.88 <= np.mean([d.mean.low <= 1.5 <= d.mean.high for d in runs]) <= 0.97
    # The share of latents beyond the maximum is at most what is said, in 95% of runs.
    beyond = np.mean([d.maximum.value**-3 <= d.maximum.beyond for d in runs])
    assert 0.92 <= beyond <= 0.98


def test_points_without_a_finite_constant_are_not_averaged_away(rng):
    least = rng.uniform(0.5, 1, 100)
    least[:30] = 0
    c = Constants.of(least, np.ones(100))
    assert c.local.mean.value == np.inf and not c.local.mean.has_interval and c.local.maximum.value == np.inf
    assert c.scale_free == np.inf and c.local.quantiles[0.5].value < 2 and c.local.quantiles[0.95].value == np.inf
    assert c.scale == best_scale(least[30:], np.ones(70))


def test_few_points_bound_no_far_quantile():
    q = distribution(np.array([1.5, 2.0, 3.0])).quantiles
    assert q[0.05].low == 1 and q[0.99].high == np.inf


def test_half_of_many_infinite_constants_is_infinite():
    values = np.full(4000, np.inf)
    values[:1000] = 2.0
    assert maximum_of_half(np.sort(values)) == np.inf
    assert distribution(values).maximum.of_half == np.inf
    assert maximum_of_half(np.full(4000, 2.0)) == pytest.approx(2.0)


def test_a_conformal_spectrum_has_no_anisotropy(rng):
    conformal = np.repeat(rng.uniform(1, 5, (50, 1)), 3, axis=1)
    found = Isometry.of(conformal)
    assert found.anisotropy == pytest.approx(0, abs=1e-12)
    assert found.condition == (1.0, 1.0, 1.0) and found.spectrum.shape == (3, 3)
    linear = Isometry.of(np.tile([4.0, 2.0, 1.0], (50, 1)))
    assert linear.anisotropy == pytest.approx(1) and linear.condition[1] == 4
    np.testing.assert_allclose(linear.spectrum, np.tile([[4.0], [2.0], [1.0]], 3))
    assert (linear.smallest, linear.largest) == (1, 4)
    assert np.isnan(Isometry.of(np.ones((5, 2))).anisotropy)


def test_a_singular_jacobian_is_told():
    found = Isometry.of(np.array([[2.0, 0.0], [1.0, 1.0]]))
    assert found.condition[2] == np.inf and np.isnan(found.anisotropy) and found.smallest == 0
    nothing = Isometry.of(np.array([[0.0, 0.0], [3.0, 1.0]]))
    assert nothing.condition == (3.0, 3.0, np.inf)


def test_ratios_are_those_of_scipy(rng):
    z, x = rng.normal(size=(60, 3)), rng.normal(size=(60, 7)) + 1e3
    ratios = pdist(x) / pdist(z)
    found = Pairwise.of(z, x)
    assert found.pairs == len(ratios)
    assert (found.least, found.greatest) == pytest.approx((ratios.min(), ratios.max()), rel=1e-8)
    assert found.quantiles[1] == pytest.approx(np.median(ratios), rel=0.01)
    assert found.constant == pytest.approx(max(ratios.max(), 1 / ratios.min()))
    assert found.scale_free == pytest.approx(np.sqrt(ratios.max() / ratios.min()))


def test_a_scaled_isometry_keeps_all_pairs(rng):
    z = rng.normal(size=(40, 5)).astype(np.float32)
    found = Pairwise.of(z, 3 * z @ ortho_group.rvs(5, random_state=0) + 7)
    assert found.constant == pytest.approx(3, rel=1e-6) and found.scale_free == pytest.approx(1, rel=1e-6)


def test_equal_latents_are_left_out_and_equal_outputs_are_told(rng):
    z = rng.normal(size=(10, 2))
    assert Pairwise.of(np.vstack([z, z[:1]]), np.vstack([z, z[:1]])).constant == pytest.approx(1)
    assert Pairwise.of(z, z * [1, 1] * 0).constant == np.inf
    with pytest.raises(InputError, match="no distances to compare"):
        Pairwise.of(np.ones((5, 2)), np.ones((5, 2)))
