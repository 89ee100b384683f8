"""Mixings: inverses, Jacobians, condition numbers, bi-Lipschitz constants."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nearid.base.errors import InputError
from nearid.lab.processes import mixing as module
from nearid.lab.processes.mixing import Mixing, OrthogonalMixing, draw_mixing, draw_orthogonal, least_condition


def plain_conditions(n, draws, seed):
    """Condition numbers of the same draws one by one, by singular values."""
    rng = np.random.default_rng(seed)
    weights = [rng.uniform(-1, 1, (n, n)) for _ in range(draws)]
    return np.array([np.linalg.cond(w / np.linalg.norm(w, axis=0)) for w in weights])


@pytest.mark.parametrize("n", [1, 2, 5, 10, 30])
@pytest.mark.parametrize("draws", [1, 300, 1000])
def test_the_least_condition_is_that_of_a_plain_search(n, draws):
    found = least_condition(n, np.random.default_rng(3), draws=draws)
    # The larger the condition, the fewer of its digits are known; those of its inverse are known absolutely.
    assert 1 / found == pytest.approx(1 / plain_conditions(n, draws, 3).min(), abs=1e-10)


@given(st.integers(1, 8), st.floats(1, 30), st.integers(0, 1000))
def test_no_matrix_at_or_below_the_limit_is_ruled_out(n, limit, seed):
    weights = np.random.default_rng(seed).uniform(-1, 1, (50, n, n))
    plain = [np.linalg.cond(w / np.linalg.norm(w, axis=0)) for w in weights]
    kept = dict(module._conditions(weights, limit))
    for at, condition in enumerate(plain):
        assert at in kept or condition > limit * (1 - 1e-9)
        if at in kept:
            assert kept[at] == pytest.approx(condition, rel=1e-6)


def test_singular_draws_are_passed_over():
    weights = np.stack([np.ones((3, 3)), np.eye(3)])
    assert min(c for _, c in module._conditions(weights, np.inf)) == pytest.approx(1)


def test_weights_follow_the_rule():
    seed, draws = 5, 2000
    threshold = least_condition(10, np.random.default_rng(seed), draws=draws)
    mixing = draw_mixing(10, 3, np.random.default_rng(seed), draws=draws)
    assert len(mixing.weights) == 3 and mixing.n == 10
    assert max(mixing.conditions) <= threshold * (1 + 1e-12)
    for w in mixing.weights:
        np.testing.assert_allclose(np.linalg.norm(w, axis=0), 1, atol=1e-12)
    assert len({c for c in mixing.conditions}) == 3


def test_the_usual_search_at_ten_latents_finds_about_four():
    assert 3.2 < least_condition(10, np.random.default_rng(0)) < 4.8


@given(st.integers(1, 12), st.integers(1, 5), st.floats(0.05, 1), st.integers(0, 1000))
def test_the_inverse_gives_latents_back(n, layers, slope, seed):
    rng = np.random.default_rng(seed)
    mixing = draw_mixing(n, layers, rng, slope=slope, draws=50)
    z = rng.normal(size=(20, n))
    lost = np.prod(mixing.conditions) / slope ** (layers - 1)
    np.testing.assert_allclose(mixing.inverse(mixing(z)), z, atol=1e-13 * lost)


def test_observations_are_those_of_the_formula(rng):
    a, b = rng.normal(size=(2, 3, 3))
    z = rng.normal(size=(7, 3))
    hidden = z @ a.T
    expected = np.where(hidden > 0, hidden, 0.2 * hidden) @ b.T
    np.testing.assert_allclose(Mixing((a, b))(z), expected, atol=1e-14)


def test_the_jacobian_is_that_of_differences(rng):
    mixing = draw_mixing(4, 3, rng, draws=50)
    z = rng.normal(size=(6, 4))
    step = 1e-6
    numeric = np.stack([(mixing(z + step * e) - mixing(z - step * e)) / (2 * step) for e in np.eye(4)], axis=2)
    np.testing.assert_allclose(mixing.jacobian(z), numeric, atol=1e-6)


def test_the_same_seed_gives_the_same_mixing():
    first, again, other = (draw_mixing(5, 2, np.random.default_rng(s), draws=100).weights for s in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_the_mixing_reports_that_it_is_injective(rng):
    found = draw_mixing(3, 2, rng, draws=50).assumption
    assert found.holds and "2 invertible layers" in found.note


def test_mixings_that_cannot_be_are_told(rng):
    with pytest.raises(InputError, match="at least one layer"):
        Mixing(())
    with pytest.raises(InputError, match="square matrices of one size"):
        Mixing((np.eye(2), np.eye(3)))
    with pytest.raises(InputError, match="slope is 0"):
        Mixing((np.eye(2),), slope=0)
    with pytest.raises(InputError, match="singular"):
        Mixing((np.ones((2, 2)),))
    for bad in ({"n": 0, "layers": 1}, {"n": 2, "layers": 0}, {"n": 2, "layers": 1, "draws": 0}):
        with pytest.raises(InputError, match="is 0, but a whole number"):
            draw_mixing(rng=rng, **bad)


WIDTHS = (3, 5, 8, 12)


def test_slope_one_preserves_all_distances(rng):
    mixing = draw_orthogonal(WIDTHS, rng, slope=1.0)
    z = rng.normal(size=(20, 3))
    before, after = (np.linalg.norm(a[:, None] - a[None], axis=2) for a in (z, mixing(z)))
    np.testing.assert_allclose(after, before, atol=1e-12)
    assert mixing.bound == 1 and mixing(z).shape == (20, 12)


@pytest.mark.parametrize("slope", [0.1, 0.5])
def test_stretches_keep_to_the_bound(slope, rng):
    mixing = draw_orthogonal(WIDTHS, rng, slope=slope)
    stretches = np.linalg.svd(mixing.jacobian(rng.normal(size=(300, 3))), compute_uv=False)
    assert slope**2 - 1e-12 <= stretches.min() < 0.9 * stretches.max() <= 0.9 + 1e-12
    assert mixing.bound == pytest.approx(1 / slope)
    assert np.sqrt(stretches.max() / stretches.min()) <= mixing.bound
    assert mixing.assumption.holds and f"{1 / slope:.3g}" in mixing.assumption.note


def test_the_jacobian_is_the_derivative(rng):
    mixing, z = draw_orthogonal(WIDTHS, rng, slope=0.3), rng.normal(size=(10, 3))
    step = 1e-6
    for k in range(3):
        shift = step * np.eye(3)[k]
        slope = (mixing(z + shift) - mixing(z - shift)) / (2 * step)
        np.testing.assert_allclose(mixing.jacobian(z)[:, :, k], slope, atol=1e-8)


def test_layers_are_uniform(rng):
    # Without the signs of the triangle, the first entry of a draw by Householder is never positive.
    signs = [np.sign(draw_orthogonal((1, 2), rng, slope=1.0).weights[0][0, 0]) for _ in range(50)]
    assert 10 < signs.count(1.0) < 40


@pytest.mark.parametrize(
    ("widths", "slope", "told"),
    [
        ((3, 2), 0.5, "must not decrease"),
        ((3,), 0.5, "at least two"),
        ((2, 3), 0.0, "slope is 0.0"),
        ((2, 3), 1.5, "slope"),
    ],
)
def test_impossible_mixings_get_a_sentence(widths, slope, told, rng):
    with pytest.raises(InputError, match=told):
        draw_orthogonal(widths, rng, slope=slope)


def test_weights_are_checked(rng):
    for weights, told in (
        ((), "no weights"),
        ((rng.normal(size=(4, 2)),), "no orthonormal columns"),
        ((np.eye(3), np.eye(4)), "do not follow"),
    ):
        with pytest.raises(InputError, match=told):
            OrthogonalMixing(weights, 0.5)
