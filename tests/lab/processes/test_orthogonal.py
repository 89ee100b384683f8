"""Orthogonal mixings: isometric at slope 1, bounded stretches otherwise, a Jacobian as finite differences have it."""

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.processes.orthogonal import OrthogonalMixing, draw_orthogonal

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
    [((3, 2), 0.5, "none below"), ((3,), 0.5, "at least two"), ((2, 3), 0.0, "slope is 0.0"), ((2, 3), 1.5, "slope")],
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
