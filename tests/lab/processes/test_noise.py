"""Noise and the von Mises-Fisher law against their distribution functions."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from scipy.integrate import cumulative_simpson
from scipy.special import ive

from nearid.base.errors import InputError
from nearid.lab.processes.noise import GeneralisedNormal, Laplace, Normal, VonMisesFisher
from nearid.lab.processes.spaces import Sphere

FAMILIES = [
    (Normal(0.7), stats.norm(scale=0.7)),
    (Laplace(0.7), stats.laplace(scale=0.7)),
    (GeneralisedNormal(0.7, 3), stats.gennorm(3, scale=0.7)),
    (GeneralisedNormal(0.7, 0.5), stats.gennorm(0.5, scale=0.7)),
    (GeneralisedNormal(0.7, 40), stats.gennorm(40, scale=0.7)),
]
EACH = pytest.mark.parametrize(("noise", "law"), FAMILIES, ids=lambda f: getattr(f, "label", ""))
# With fixed seeds this is no chance of failure, but what a wrong law would have to survive.
LEVEL = 1e-3


def cut_cdf(law, low, high):
    """Distribution function of the law given [low, high]."""
    return lambda t: (law.cdf(t) - law.cdf(low)) / (law.cdf(high) - law.cdf(low))


@EACH
def test_free_noise_has_the_law_of_scipy(noise, law, rng):
    drawn = noise.draw((20_000, 2), rng)
    assert stats.kstest(drawn.ravel(), law.cdf).pvalue > LEVEL
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.03


@EACH
@pytest.mark.parametrize(("below", "above"), [(0.3, 1.0), (0.0, 0.5), (0.02, 0.0), (1e-3, 2e-3), (5.0, 5.0)])
def test_cut_off_noise_has_the_law_between_the_walls(noise, law, below, above, rng):
    shape = (20_000,)
    drawn = noise.draw_between(np.full(shape, below), np.full(shape, above), rng)
    assert drawn.min() >= -below and drawn.max() <= above
    assert stats.kstest(drawn, cut_cdf(law, -below, above)).pvalue > LEVEL


def test_cut_off_normal_noise_is_scipys_truncnorm(rng):
    below, above = np.full(20_000, 0.5), np.full(20_000, 0.1)
    drawn = Normal(0.2).draw_between(below, above, rng)
    assert stats.kstest(drawn, stats.truncnorm(-2.5, 0.5, scale=0.2).cdf).pvalue > LEVEL


@EACH
def test_walls_differ_from_row_to_row(noise, law, rng):
    below = np.repeat([0.1, 0.8], 10_000)
    above = 0.9 - below
    drawn = noise.draw_between(below, above, rng)
    for half, low in ((drawn[:10_000], 0.1), (drawn[10_000:], 0.8)):
        assert stats.kstest(half, cut_cdf(law, -low, 0.9 - low)).pvalue > LEVEL


# A density with a cusp is not flat in any box.
@pytest.mark.parametrize("noise", [noise for noise, _ in FAMILIES if noise.exponent >= 1], ids=lambda f: f.label)
def test_a_box_far_narrower_than_the_noise_gives_uniform_noise(noise, rng):
    tiny = np.full(5_000, 1e-9)
    assert stats.kstest(noise.draw_between(tiny, 2 * tiny, rng), stats.uniform(-1e-9, 3e-9).cdf).pvalue > LEVEL


@EACH
def test_a_box_far_wider_than_the_noise_and_one_of_no_width(noise, law, rng):
    far = np.full(5_000, 1e200)
    assert stats.kstest(noise.draw_between(far, far, rng), law.cdf).pvalue > LEVEL
    assert not noise.draw_between(np.zeros(50), np.zeros(50), rng).any()


@given(st.floats(0.1, 50), st.floats(1e-6, 1e6), st.floats(0, 1e3), st.floats(0, 1e3), st.integers(0, 100))
def test_cut_off_noise_is_finite_and_inside_for_any_shape_and_walls(beta, scale, below, above, seed):
    walls = np.full(100, below), np.full(100, above)
    drawn = GeneralisedNormal(scale, beta).draw_between(*walls, np.random.default_rng(seed))
    assert np.isfinite(drawn).all() and drawn.min() >= -below and drawn.max() <= above


def test_special_shapes_are_laplace_and_normal():
    t = np.linspace(0, 4, 9)
    np.testing.assert_allclose(GeneralisedNormal(1, 1)._mass(t), Laplace(1)._mass(t), atol=1e-14)
    np.testing.assert_allclose(GeneralisedNormal(1, 2)._mass(t), Normal(np.sqrt(0.5))._mass(t * np.sqrt(2)), atol=1e-14)
    assert (Laplace(1).exponent, Normal(1).exponent, GeneralisedNormal(1, 3).exponent) == (1, 2, 3)


@EACH
def test_the_same_seed_gives_the_same_noise(noise, law):
    walls = np.full(100, 0.1), np.full(100, 0.5)
    first, again, other = (noise.draw_between(*walls, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_bad_scales_and_shapes_are_told():
    for family in (Normal, Laplace):
        with pytest.raises(InputError, match="scale of the noise is 0"):
            family(0)
    with pytest.raises(InputError, match="scale of the noise is -1"):
        GeneralisedNormal(-1, 3)
    with pytest.raises(InputError, match=r"beta is 0.01, but at least 0.1"):
        GeneralisedNormal(1, 0.01)


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
