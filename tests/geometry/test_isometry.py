"""Isometry of spectra and of pairs, against closed forms and scipy's distances."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import ortho_group

from nearid.base.errors import InputError
from nearid.geometry.isometry import Isometry, Pairwise


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
    with pytest.raises(InputError, match="no distance to preserve"):
        Pairwise.of(np.ones((5, 2)), np.ones((5, 2)))
