"""Contrasts against their definitions, numerical derivatives and integrals."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from nearid.ica.contrast import CONTRASTS

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


def test_the_fourth_power_reaches_twice_the_root_of_the_columns():
    # What is left of v^4 / 4 is a Hermite polynomial of order 4, whose derivative has 4 times its variance.
    assert CONTRASTS["cube"].reach == pytest.approx(2)
    assert CONTRASTS["cube"].spread == pytest.approx(np.sqrt(24) / 4)
