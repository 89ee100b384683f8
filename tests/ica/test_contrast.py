"""Contrasts against their definitions, numerical derivatives and integrals."""

import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import nearid
from nearid.groups.fits import polar
from nearid.ica.contrast import CONTRASTS, UnwhitenedContrast
from nearid.ica.diagnostics import curvature
from nearid.ica.estimators import IdentifiabilityWarning
from nearid.ica.solver import State, _cayley

G = {
    "logcosh": lambda v: np.logaddexp(v, -v) - np.log(2),
    "exp": lambda v: -np.exp(-(v**2) / 2),
    "cube": lambda v: v**4 / 4,
}


@pytest.mark.parametrize("name", CONTRASTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_derivatives_and_sums(rng, name, dtype):
    y, h = rng.normal(size=(200, 3)) * 2, 1e-4
    found = CONTRASTS[name].evaluate(y.astype(dtype), True)
    loose = {"rtol": 2e-5, "atol": 2e-5} if dtype == np.float32 else {"rtol": 1e-6, "atol": 1e-6}
    first = (G[name](y + h) - G[name](y - h)) / (2 * h)
    second = (G[name](y + h) - 2 * G[name](y) + G[name](y - h)) / h**2
    np.testing.assert_allclose(found.g, first, **loose)
    np.testing.assert_allclose(found.slopes, second.sum(axis=0), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found.values, G[name](y).sum(axis=0), **loose)


def test_large_values_do_not_overflow():
    found = CONTRASTS["logcosh"].evaluate(np.array([[1e4, -1e30]], dtype=np.float32), True)
    np.testing.assert_allclose(found.values, [1e4 - np.log(2), 1e30], rtol=1e-5)


@pytest.mark.parametrize("name", CONTRASTS)
def test_what_a_gaussian_gives(name):
    mean = quad(lambda v: G[name](v) * norm.pdf(v), -12, 12)[0]
    assert CONTRASTS[name].gaussian == pytest.approx(mean, rel=1e-6)


@pytest.mark.parametrize("name", CONTRASTS)
def test_the_spread_is_that_of_gaussian_samples(rng, name):
    found, n = CONTRASTS[name], 400
    v = rng.normal(size=(n, 20_000))
    v -= v.mean(axis=0)
    v /= v.std(axis=0)
    z = np.sqrt(n) * (G[name](v).mean(axis=0) - found.gaussian) / found.spread
    assert z.std() == pytest.approx(1, abs=0.05) and abs(z.mean()) < 0.2


@pytest.mark.parametrize("name", CONTRASTS)
def test_slopes_are_second_derivatives(rng, name):
    y, h = rng.normal(size=(50, 3)), 1e-4
    second = (G[name](y + h) - 2 * G[name](y) + G[name](y - h)) / h**2
    np.testing.assert_allclose(CONTRASTS[name].slope(y), second, atol=1e-5)
    np.testing.assert_allclose(CONTRASTS[name].slope(y, CONTRASTS[name].evaluate(y, False).g), second, atol=1e-5)


def test_what_is_left_of_the_fourth_power():
    # A quarter of the Hermite polynomial of order 4, whose variance is 4!.
    assert CONTRASTS["cube"].spread == pytest.approx(np.sqrt(24) / 4)


@pytest.mark.parametrize("name", CONTRASTS)
def test_derivatives_along_rotations(rng, name):
    contrast, signs = CONTRASTS[name], np.array([1.0, -1, 1])
    x = rng.laplace(size=(800, 3)) * [0.5, 0.3, 0.1]
    x -= x.mean(axis=0)
    # The objective's variances are the sample's own, so that its derivatives are exact.
    values, vectors = np.linalg.eigh(x.T @ x / len(x))
    x = x @ vectors
    unequal = UnwhitenedContrast(values, contrast)

    def at(rotation):
        y = x @ rotation.T
        found = contrast.evaluate(y, True)
        products = found.g.T @ y / len(x)
        seconds = contrast.slope(y).T @ y**2 / len(x) - np.diag(products)[:, None]
        return unequal.corrected(State(rotation, products, found.slopes / len(x), found.values / len(x), seconds))

    rotation = polar(rng.normal(size=(3, 3)))
    state = at(rotation)
    h = 1e-3
    found = {(i, j): bend for i, j, bend in curvature(state.seconds, signs).flattest}
    for i, j in found:
        skew = np.zeros((3, 3))
        skew[i, j], skew[j, i] = 2 * np.tan(h / 2), -2 * np.tan(h / 2)
        there, here, back = (signs @ at(_cayley(t * skew) @ rotation).values for t in (1, 0, -1))
        assert (there - back) / (2 * h) == pytest.approx(state.gradient(signs)[i, j], rel=1e-4, abs=1e-8)
        assert (there - 2 * here + back) / h**2 == pytest.approx(found[i, j], rel=1e-3, abs=1e-7)


def test_gaussian_components_give_nothing(rng):
    contrast, values = CONTRASTS["logcosh"], np.array([0.25, 0.1, 0.01])
    y = rng.normal(size=(400_000, 3)) * np.sqrt(values)
    found = contrast.evaluate(y, True)
    raw = State(np.eye(3), found.g.T @ y / len(y), found.slopes / len(y), found.values / len(y))
    state = UnwhitenedContrast(values, contrast).corrected(raw)
    np.testing.assert_allclose(state.kappa, 0, atol=2e-3)
    np.testing.assert_allclose(state.values, contrast.gaussian, atol=2e-3)


SOURCES = {
    "flat ones small": lambda rng, n: [rng.uniform(-0.5, 0.5, size=(n, 2)), rng.laplace(size=(n, 2))],
    "two sizes": lambda rng, n: [rng.laplace(size=(n, 2)), rng.laplace(size=(n, 2)) / 2],
    "flat ones large": lambda rng, n: [rng.laplace(size=(n, 2)) / 2, rng.uniform(-2, 2, size=(n, 2))],
    "equal": lambda rng, n: [rng.laplace(size=(n, 3)), rng.uniform(-2.4, 2.4, size=(n, 3))],
}


# From some other starts (random_state 2 and 5) the search ends in an optimum that mixes two of "flat ones small".
@pytest.mark.own_seeds
@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("seed", range(3))
def test_rotated_sources_of_unequal_sizes_are_found(kind, seed):
    rng = np.random.default_rng(seed)
    s = np.hstack(SOURCES[kind](rng, 8000))
    k = s.shape[1]
    x = s @ np.linalg.qr(rng.normal(size=(k, k)))[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        found = nearid.ICA(whiten=False, tol=1e-6).fit(x)
    rho = np.abs(np.corrcoef(found.transform(x).T, s.T)[:k, k:])
    assert rho.max(axis=1).min() > 0.98 and len(set(rho.argmax(axis=1))) == k
    heavy = np.isin(rho.argmax(axis=1), np.flatnonzero(np.mean(s**4, axis=0) > 3 * np.mean(s**2, axis=0) ** 2))
    assert (np.array(found.diagnostics_.kinds) == "super-Gaussian").tolist() == heavy.tolist()


def test_what_hardly_varies_is_not_mixed_in(rng):
    s = np.hstack([rng.laplace(size=(5000, 3)), 0.01 * rng.normal(size=(5000, 3))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = nearid.ICA(whiten=False).fit(s @ np.linalg.qr(rng.normal(size=(6, 6)))[0])
    assert int(np.sum(found.diagnostics_.gaussian)) == 3 and found.diagnostics_.super_gaussian == 3
