"""Spaces: draws stay inside; conditions that do not hold."""

import numpy as np
import pytest
from scipy import stats

from nearid.base.errors import InputError
from nearid.lab.processes.noise import GeneralisedNormal, Laplace, Normal, VonMisesFisher
from nearid.lab.processes.spaces import Assumption, Box, Sphere, Unbounded, violated


def test_violated_are_those_that_do_not_hold():
    good, bad = Assumption("a", "x", True, ""), Assumption("b", "y", False, "z")
    assert violated([good, bad]) == (bad,) and violated([good]) == ()


LEVEL = 1e-3


@pytest.mark.parametrize("n", [2, 3, 10])
def test_uniform_on_the_sphere(n, rng):
    z = Sphere(n).uniform(10_000, rng)
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), 1, atol=1e-12)
    # The square of a coordinate of a uniform direction is Beta(1/2, (n-1)/2), its sign even.
    assert stats.kstest(z[:, 0] ** 2, stats.beta(0.5, (n - 1) / 2).cdf).pvalue > LEVEL
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=0.04)


def test_noise_on_the_sphere_is_added_and_then_projected():
    space, noise = Sphere(3), Laplace(0.3)
    centres = space.uniform(50, np.random.default_rng(0))
    found = space.around(centres, noise, np.random.default_rng(1))
    moved = centres + noise.draw(centres.shape, np.random.default_rng(1))
    np.testing.assert_allclose(found, moved / np.linalg.norm(moved, axis=1, keepdims=True), atol=1e-15)


def test_vmf_on_the_sphere(rng):
    space = Sphere(3)
    centres = np.tile(space.centre, (10_000, 1))
    cosine = space.around(centres, VonMisesFisher(2.0), rng)[:, 0]
    # In three dimensions the cosine has density exp(kappa w).
    cdf = lambda w: np.expm1(2 * (w + 1)) / np.expm1(4)  # noqa: E731
    assert stats.kstest(cosine, cdf).pvalue > LEVEL


def test_uniform_in_the_box(rng):
    z = Box(2, -1, 3).uniform(10_000, rng)
    for column in z.T:
        assert stats.kstest(column, stats.uniform(-1, 4).cdf).pvalue > LEVEL


@pytest.mark.parametrize(
    ("noise", "law"),
    [
        (Normal(0.5), stats.norm(scale=0.5)),
        (Laplace(0.5), stats.laplace(scale=0.5)),
        (GeneralisedNormal(0.5, 3), stats.gennorm(3, scale=0.5)),
    ],
    ids=lambda f: getattr(f, "label", ""),
)
def test_noise_in_the_box_is_that_of_rejection(noise, law, rng):
    space = Box(2, -1, 1)
    centre = np.array([-1.0, 0.7])
    z = space.around(np.tile(centre, (10_000, 1)), noise, rng)
    assert z.min() >= -1 and z.max() <= 1
    for column, c in zip(z.T, centre, strict=True):
        free = c + law.rvs(40_000, random_state=1)
        assert stats.ks_2samp(column, free[np.abs(free) <= 1]).pvalue > LEVEL


def test_free_noise_in_all_of_space(rng):
    space = Unbounded(3)
    centres = rng.normal(size=(10_000, 3))
    moved = space.around(centres, Normal(2.0), rng) - centres
    assert stats.kstest(moved.ravel(), stats.norm(scale=2).cdf).pvalue > LEVEL
    assert not space.centre.any()


def test_centres_are_in_their_spaces():
    assert np.linalg.norm(Sphere(4).centre) == 1
    np.testing.assert_array_equal(Box(2, 1, 5).centre, [3, 3])


def test_spaces_that_cannot_be_are_told():
    with pytest.raises(InputError, match="n of the sphere is 1"):
        Sphere(1)
    with pytest.raises(InputError, match="n of the box is 0"):
        Box(0)
    with pytest.raises(InputError, match=r"\[1.0, 0.0\] is empty"):
        Box(2, 1.0, 0.0)
    with pytest.raises(InputError, match="finite low < high"):
        Box(2, 0.0, np.inf)
    with pytest.raises(InputError, match="n of the space is 0"):
        Unbounded(0)


def test_centres_and_spreads_that_do_not_fit_are_told(rng):
    with pytest.raises(InputError, match=r"shape \(4, 2\), but \(size, 3\)"):
        Sphere(3).around(np.zeros((4, 2)), Normal(1), rng)
    with pytest.raises(InputError, match="not on the unit sphere"):
        Sphere(2).around(np.ones((4, 2)), VonMisesFisher(1), rng)
    with pytest.raises(InputError, match=r"outside the box \[0, 1\]\^2"):
        Box(2).around(np.full((4, 2), 1.5), Normal(1), rng)
    for space in (Box(2), Unbounded(2)):
        with pytest.raises(InputError, match="is defined on the sphere"):
            space.around(np.full((4, 2), 0.5), VonMisesFisher(1), rng)
