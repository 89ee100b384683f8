"""Bounds: closed forms, a network that obeys its bound, and the triangle inequality by simulation."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from scipy.optimize import curve_fit
from torch import nn
from torch.nn.utils.parametrizations import orthogonal

from nearid.base.errors import InputError
from nearid.geometry.bounds import fit_rate, leaky_relu_bound, rate, rigid_bound, statistical_bound
from nearid.questions.lipschitz.run import lipschitz


def test_the_rate_is_exact_near_one():
    assert float(rate(1.0)) == 0 and float(rate(np.sqrt(2))) == pytest.approx(1)
    # Squares would lose all digits here.
    assert float(rate(1 + 1e-15)) == pytest.approx(np.sqrt(2.22e-15), rel=0.01)
    with pytest.raises(InputError, match=r"at least 1, but 0\.5"):
        rate([1.2, 0.5])


def test_theorem_1_is_silent_where_it_does_not_apply():
    found = rigid_bound(1.1, 2.0)
    assert found.applies and found.epsilon == pytest.approx(2 * np.sqrt(0.21)) and found.constant == 2
    assert rigid_bound(1.1).epsilon is None and rigid_bound(1.1).rate == found.rate
    far = rigid_bound(1.5, 2.0)
    assert not far.applies and far.epsilon is None
    assert not rigid_bound(np.inf).applies
    with pytest.raises(InputError, match="above 0"):
        rigid_bound(1.1, 0.0)


def test_the_fit_is_least_squares_and_covers_the_truth():
    rng = np.random.default_rng(0)
    L = rng.uniform(1, 3, 40)
    covered = []
    for _ in range(200):
        y = 0.3 * np.sqrt(L**2 - 1) + 0.05 * rng.normal(size=40)
        found = fit_rate(L, y)
        covered.append(found.constant.low <= 0.3 <= found.constant.high)
    assert 0.9 <= np.mean(covered) <= 0.99
    other, spread = curve_fit(lambda x, c: c * np.sqrt(x**2 - 1), L, y)
    assert found.constant.value == pytest.approx(other[0]) and found.constant.n == 40
    assert found.constant.high - found.constant.low == pytest.approx(2 * 2.0227 * np.sqrt(spread[0, 0]), rel=1e-3)
    assert found.r2 == pytest.approx(1 - np.var(y - found.at(L) + np.mean(found.at(L) - y)) / np.var(y), abs=0.02)
    np.testing.assert_allclose(found.at([1, 2]), [0, found.constant.value * np.sqrt(3)])


def test_what_cannot_be_fitted_is_told():
    with pytest.raises(InputError, match="at least 3 runs"):
        fit_rate([1.1, 1.2], [0.1, 0.2])
    with pytest.raises(InputError, match="not finite"):
        fit_rate([1.1, np.inf, 1.2], [0.1, 0.2, 0.3])
    with pytest.raises(InputError, match="cannot be fitted"):
        fit_rate([1.0, 1.0, 1.0], [0.1, 0.2, 0.3])


@given(st.integers(0, 1000), st.floats(0.5, 2))
def test_structural_implies_statistical(seed, scale):
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(30, 3))
    q = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2)]
    e = [0.1 * v / np.linalg.norm(v, axis=1, keepdims=True) for v in rng.normal(size=(2, 30, 3))]
    f, g = scale * u @ q[0] + e[0], u @ q[1] + e[1]
    # The motion that takes one run to the truth, and the truth to the other.
    error = np.linalg.norm(f - scale * g @ q[1].T @ q[0], axis=1).max()
    assert error <= statistical_bound(0.1, norm=scale) * (1 + 1e-12)
    assert statistical_bound(0.1) == pytest.approx(0.2)


@pytest.mark.parametrize("leak", [0.5, 0.9, 1.0])
def test_orthogonal_networks_obey_their_bound(leak):
    torch.manual_seed(0)
    layers = [orthogonal(nn.Linear(a, b, bias=False)) for a, b in ((4, 8), (8, 16), (16, 30))]
    decoder = nn.Sequential(layers[0], nn.LeakyReLU(leak), layers[1], nn.LeakyReLU(leak), layers[2]).double()
    found = lipschitz(decoder, np.random.default_rng(0).normal(size=(200, 4)), directions=5)
    plain, scaled = leaky_relu_bound(leak, 2)
    assert (plain, scaled) == pytest.approx((leak**-2, 1 / leak))
    assert 1 <= found.exact.local.maximum.value <= plain + 1e-6
    assert 1 - 1e-9 <= found.exact.scale_free <= scaled + 1e-6
    # Not far from it either: some units are negative.
    assert found.exact.local.maximum.value >= 1 + (plain - 1) / 4


def test_impossible_arguments_are_told():
    with pytest.raises(InputError, match="leak must be above 0"):
        leaky_relu_bound(0.0, 2)
    with pytest.raises(InputError, match="norm above 0"):
        statistical_bound(0.1, norm=0)


def test_what_is_too_large_for_a_float_is_infinite():
    bound, scaled = leaky_relu_bound(0.001, 200)
    assert bound == np.inf and scaled == pytest.approx(1e300)
    with pytest.raises(InputError, match="finite, not inf"):
        rigid_bound(1.1, np.inf)
