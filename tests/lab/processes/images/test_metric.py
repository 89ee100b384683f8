"""Metric tensors against closed forms, and what they say of isometric, conformal and singular maps."""

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.processes.images.metric import distortion, metric_tensors


def test_the_metric_of_a_linear_map_and_of_polar_coordinates(rng):
    a = rng.standard_normal((3, 7))
    z = rng.standard_normal((5, 3))
    found = metric_tensors(lambda at: at @ a, z, np.full(3, 1e-3), cell=2.0)
    np.testing.assert_allclose(found, np.broadcast_to(2 * a @ a.T, (5, 3, 3)), rtol=1e-9)
    # A step of 0 leaves a latent out.
    found = metric_tensors(lambda at: at @ a, z, [1e-3, 0, 1e-3])
    np.testing.assert_allclose(found[0], (a @ a.T)[np.ix_([0, 2], [0, 2])], rtol=1e-9)

    def polar(at):
        return np.stack([at[:, 0] * np.cos(at[:, 1]), at[:, 0] * np.sin(at[:, 1])], axis=1)

    z = rng.uniform(0.5, 2, (5, 2))
    expected = np.stack([np.diag([1, r * r]) for r in z[:, 0]])
    np.testing.assert_allclose(metric_tensors(polar, z, [1e-4, 1e-4]), expected, atol=1e-7)


def test_distortion_of_isometric_conformal_and_sheared_maps(rng):
    q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    flat = distortion(np.broadcast_to(4 * q @ q.T, (6, 3, 3)))
    np.testing.assert_allclose(flat.stretches, 2)
    np.testing.assert_allclose([flat.spread, flat.bilipschitz, flat.anisotropy.max()], 1)
    conformal = distortion(np.eye(3) * np.array([1.0, 4.0, 16.0])[:, None, None])
    np.testing.assert_allclose(conformal.anisotropy, 1)
    np.testing.assert_allclose([conformal.spread, conformal.bilipschitz], [4, 2])
    sheared = distortion(np.diag([1.0, 9.0])[None])
    np.testing.assert_allclose([sheared.anisotropy[0], sheared.spread, sheared.bilipschitz], [3, 1, np.sqrt(3)])


def test_a_lost_direction_is_no_finite_constant():
    found = distortion(np.stack([np.eye(2), np.diag([1.0, 0.0])]))
    assert found.bilipschitz == found.spread == np.inf
    np.testing.assert_array_equal(found.anisotropy, [1, np.inf])
    assert distortion(np.zeros((1, 2, 2))).bilipschitz == np.inf


def test_shapes_that_do_not_fit_are_told():
    with pytest.raises(InputError, match=r"shape \(2, 2\)"):
        distortion(np.eye(2))
    with pytest.raises(InputError, match=r"steps \(2,\)"):
        metric_tensors(lambda z: z, np.zeros((4, 3)), [1, 1])
    with pytest.raises(InputError, match="All steps are 0"):
        metric_tensors(lambda z: z, np.zeros((4, 3)), np.zeros(3))
