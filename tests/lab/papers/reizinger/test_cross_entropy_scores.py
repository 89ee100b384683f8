"""Scores against brute force, scikit-learn and the densities of scipy."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import ortho_group, vonmises_fisher

from nearid.lab.papers.reizinger.cross_entropy_scores import largest_within, least_loss, linear_fit, matched_scale
from nearid.lab.processes.classes import ClusterProcess
from nearid.lab.processes.noise import Laplace, Normal, VonMisesFisher
from nearid.lab.processes.spaces import Sphere


def test_a_scaled_rotation_is_found(rng):
    true = rng.normal(size=(100, 4))
    fit = linear_fit(10 * true @ ortho_group.rvs(4, random_state=0), true, intercept=False)
    assert fit.r2 == pytest.approx(100)
    np.testing.assert_allclose(fit.singular, 0.1)
    np.testing.assert_allclose(fit.mapped, true, atol=1e-12)


def test_only_an_intercept_takes_a_shift(rng):
    true = rng.normal(size=(200, 3))
    learned = true @ rng.normal(size=(3, 3)) + 5
    assert linear_fit(learned, true, intercept=True).r2 == pytest.approx(100)
    assert linear_fit(learned, true, intercept=False).r2 < 95
    # The intercept is no direction of the map.
    assert len(linear_fit(learned, true, intercept=True).singular) == 3


@pytest.mark.parametrize("intercept", [True, False])
def test_r2_is_that_of_the_second_half(intercept, rng):
    linear_model = pytest.importorskip("sklearn.linear_model")
    learned = rng.normal(size=(300, 3))
    true = learned @ rng.normal(size=(3, 4)) + rng.normal(size=(300, 4)) * [0.1, 1, 2, 3] + 1
    model = linear_model.LinearRegression(fit_intercept=intercept).fit(learned[:150], true[:150])
    expected = 100 * model.score(learned[150:], true[150:])
    assert linear_fit(learned, true, intercept=intercept).r2 == pytest.approx(expected)


def test_halves_that_do_not_determine_a_map_give_none(rng):
    x = rng.normal(size=(10, 5))
    assert linear_fit(x, x, intercept=False) is None
    x = rng.normal(size=(12, 5))
    assert linear_fit(x, x, intercept=True) is None and linear_fit(x, x, intercept=False).r2 == pytest.approx(100)


def test_the_largest_distance_within_a_class(rng):
    w, labels = rng.normal(size=(30, 3)), rng.integers(0, 5, 30)
    pairs = [(i, j) for i, j in combinations(range(30), 2) if labels[i] == labels[j]]
    expected = max(np.linalg.norm(w[i] - w[j]) for i, j in pairs) / np.sqrt((w**2).sum(axis=1).mean())
    assert largest_within(w, labels) == pytest.approx(expected)
    assert largest_within(7 * w, labels) == pytest.approx(expected)
    assert largest_within(w, np.arange(30)) is None


def test_the_rows_to_fit_may_be_chosen_and_count_once(rng):
    # Forty rows of eight vectors: halves of rows hold the same vectors, halves of vectors do not.
    true, labels = np.tile(rng.normal(size=(8, 3)), (5, 1)), np.tile(np.arange(8), 5)
    learned = np.tile(rng.normal(size=(8, 8)), (5, 1))
    assert linear_fit(learned, true, intercept=False) is None
    learned = learned[:, :3]
    assert linear_fit(learned, true, intercept=False, first=labels < 4).r2 < 50
    assert linear_fit(true, true, intercept=False, first=labels < 4).r2 == pytest.approx(100)
    assert linear_fit(true, true, intercept=False, first=labels < 3) is None


@pytest.mark.parametrize("instances", [True, False])
def test_the_least_loss_is_that_of_the_posterior(instances, rng):
    # Seven instances of three classes: the prior is not uniform.
    process = ClusterProcess(Sphere(3).uniform(3, rng), 7, VonMisesFisher(4.0))
    z, drawn = process.sample(50, rng)
    labels = drawn if instances else process.class_of(drawn)
    densities = np.column_stack([vonmises_fisher(process.vectors[i % 3], 4.0).pdf(z) for i in range(7)])
    posterior = densities / densities.sum(axis=1, keepdims=True)
    if not instances:
        posterior = np.column_stack([posterior[:, c::3].sum(axis=1) for c in range(3)])
    expected = -np.log(posterior[np.arange(50), labels]).mean()
    assert least_loss(process, z, labels, instances=instances) == pytest.approx(expected)


def test_the_least_loss_of_another_conditional_is_unknown(rng):
    process = ClusterProcess(Sphere(3).uniform(5, rng), 5, Normal(0.3))
    z, labels = process.sample(10, rng)
    assert least_loss(process, z, labels, instances=True) is None


@pytest.mark.parametrize("family", [Laplace, Normal])
@pytest.mark.parametrize(("d", "kappa"), [(2, 3.0), (5, 10.0), (20, 10.0)])
def test_noise_of_the_matched_scale_spreads_as_vmf(family, d, kappa, rng):
    centres = Sphere(d).uniform(40_000, rng)
    scale = matched_scale(family, d, kappa)
    cosines = [
        np.sum(centres * Sphere(d).around(centres, spread, rng), axis=1)
        for spread in (family(scale), VonMisesFisher(kappa))
    ]
    # Standard errors of both draws and of the one behind the scale.
    error = np.sqrt(cosines[0].var() * 1.5 + cosines[1].var()) / np.sqrt(20_000)
    assert abs(cosines[0].mean() - cosines[1].mean()) < 4 * error


def test_narrow_noise_has_the_variance_of_vmf():
    # On a small patch of the sphere vMF is normal of variance 1 / kappa.
    assert matched_scale(Normal, 5, 1e4) == pytest.approx(1e-2, rel=0.02)
    assert matched_scale(Laplace, 5, 1e4) == pytest.approx(1e-2 / np.sqrt(2), rel=0.02)
