"""The von Mises-Fisher sampler against Bessel functions, the law of the cosine, and scipy."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import cumulative_simpson
from scipy.special import ive

from nearid.base.errors import InputError
from nearid.lab.processes.spaces import Sphere
from nearid.lab.processes.vmf import VonMisesFisher

LEVEL = 1e-3


def cosines(kappa, n, size, seed=0):
    rng = np.random.default_rng(seed)
    centres = Sphere(n).uniform(size, rng)
    drawn = VonMisesFisher(kappa).draw(centres, rng)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1, atol=1e-9)
    return np.sum(drawn * centres, axis=1)


def cosine_cdf(kappa, n):
    """Integral of exp(kappa cos) sin^(n-2) over angles, by quadrature."""
    angle = np.linspace(0, np.pi, 20_001)
    density = np.exp(kappa * (np.cos(angle) - 1)) * np.sin(angle) ** (n - 2)
    mass = cumulative_simpson(density, x=angle, initial=0)
    return lambda w: 1 - np.interp(np.arccos(np.clip(w, -1, 1)), angle, mass / mass[-1])


@pytest.mark.parametrize("n", [2, 3, 5, 10, 50])
@pytest.mark.parametrize("kappa", [0, 1e-6, 0.5, 1, 10, 300])
def test_cosines_have_their_law_and_their_mean(kappa, n):
    w = cosines(kappa, n, 10_000)
    assert stats.kstest(w, cosine_cdf(kappa, n)).pvalue > LEVEL
    mean = ive(n / 2, kappa) / ive(n / 2 - 1, kappa) if kappa else 0.0
    assert abs(w.mean() - mean) < 4.5 * w.std() / np.sqrt(len(w))


@pytest.mark.parametrize("n", [2, 10])
@pytest.mark.parametrize("kappa", [1e6, 1e12, 1e30])
def test_large_kappa_is_a_normal_in_the_tangent_plane(kappa, n):
    rng = np.random.default_rng(0)
    centres = np.tile(np.eye(n)[0], (10_000, 1))
    drawn = VonMisesFisher(kappa).draw(centres, rng)
    # kappa |z - centre|^2 tends to a chi-square of n - 1 degrees; off the centre's axis nothing cancels.
    assert stats.kstest(kappa * np.sum(drawn[:, 1:] ** 2, axis=1), stats.chi2(n - 1).cdf).pvalue > LEVEL


@pytest.mark.parametrize(("n", "kappa"), [(2, 2.0), (3, 5.0), (6, 20.0)])
def test_moments_are_those_of_scipys_sampler(n, kappa):
    rng = np.random.default_rng(1)
    centre = Sphere(n).uniform(1, rng)
    ours = VonMisesFisher(kappa).draw(np.repeat(centre, 40_000, axis=0), rng)
    theirs = stats.vonmises_fisher(centre[0], kappa).rvs(40_000, random_state=2)
    np.testing.assert_allclose(ours.mean(axis=0), theirs.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(ours.T @ ours, theirs.T @ theirs, atol=0.02 * 40_000)


def test_directions_about_the_centre_are_uniform():
    rng = np.random.default_rng(3)
    drawn = VonMisesFisher(4.0).draw(np.tile([0.0, 0.0, 1.0], (10_000, 1)), rng)
    angle = np.arctan2(drawn[:, 1], drawn[:, 0])
    assert stats.kstest(angle, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > LEVEL
    # Directions do not depend on the distance from the centre.
    assert abs(stats.spearmanr(np.cos(angle), drawn[:, 2]).statistic) < 0.04


def test_each_row_has_its_own_centre():
    centres = np.repeat(np.eye(4), 5_000, axis=0)
    drawn = VonMisesFisher(10.0).draw(centres, np.random.default_rng(4)).reshape(4, 5_000, 4).mean(axis=1)
    np.testing.assert_allclose(drawn, np.eye(4) * ive(2, 10) / ive(1, 10), atol=0.02)


def test_the_same_seed_gives_the_same_points():
    first, again, other = (cosines(5, 4, 100, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


@pytest.mark.parametrize("kappa", [-1, float("nan"), float("inf")])
def test_bad_kappa_is_told(kappa):
    with pytest.raises(InputError, match=f"kappa is {kappa}, but a finite number of at least 0"):
        VonMisesFisher(kappa)


def test_the_largest_kappa_still_draws_and_more_is_told(rng):
    drawn = VonMisesFisher(1e300).draw(np.eye(3), rng)
    np.testing.assert_array_equal(drawn.round(12), np.eye(3))
    with pytest.raises(InputError, match=r"kappa is 1e\+301, but at most 1e\+300"):
        VonMisesFisher(1e301)
