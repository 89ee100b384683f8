"""R2 against scikit-learn fold by fold, its invariances and known answers, and the geometry of the map."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes
from sklearn.linear_model import LinearRegression

from nearid.base.errors import InputError
from nearid.folds import assign
from nearid.measures.factors import open_factors
from nearid.measures.r2 import r2


def rotation(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def noisy(rng, n=200, d=5, m=3):
    z = rng.normal(size=(n, d)) + 3
    return z, z @ rng.normal(size=(d, m)) + [0.5, 1, 4] * rng.normal(size=(n, m))


def test_held_out_values_are_those_of_scikit_learns_fits(rng):
    z, u = noisy(rng, n=60)
    fold = assign(60, 5, 1)
    error, spread = np.zeros(3), np.zeros(3)
    for k in range(5):
        train, test = fold != k, fold == k
        made = LinearRegression().fit(z[train], u[train]).predict(z[test])
        error += np.sum((u[test] - made) ** 2, axis=0)
        spread += np.sum((u[test] - u[train].mean(axis=0)) ** 2, axis=0)
    found = r2(z, u, random_state=1)
    np.testing.assert_allclose(found.per_factor, 1 - error / spread, atol=1e-10)
    assert found.value == pytest.approx(np.mean(1 - error / spread))


def test_in_sample_values_and_coefficients_are_scikit_learns(rng):
    z, u = noisy(rng)
    found, oracle = r2(z, u, folds=1), LinearRegression().fit(z, u)
    assert found.value == pytest.approx(oracle.score(z, u), abs=1e-12)
    scaled = np.abs(oracle.coef_.T) * z.std(axis=0)[:, None] / u.std(axis=0)
    np.testing.assert_allclose(found.matrix, scaled, atol=1e-10)


@given(seed=st.integers(0, 1000))
def test_invertible_maps_shifts_and_scales_change_nothing(seed):
    rng = np.random.default_rng(seed)
    z, u = noisy(rng, n=50)
    base = r2(z, u).per_factor
    moved = 7 * z @ (rotation(rng, 5) * [1, 2, 3, 4, 5]) - 30
    np.testing.assert_allclose(r2(moved, u * [-2, 0.01, 40] + 5).per_factor, base, atol=1e-7)
    order = rng.permutation(3)
    np.testing.assert_allclose(r2(z, u[:, order]).per_factor, base[order], atol=1e-10)


def test_a_rotation_keeps_one_and_is_told_as_a_scaled_rotation(rng):
    u = rng.uniform(size=(500, 4))
    found = r2(2 * u @ rotation(rng, 4) + 9, u)
    assert found.value == pytest.approx(1, abs=1e-10) and not found.alerts
    assert found.orthogonality_error < 1e-7
    assert found.scale == pytest.approx(0.5) and found.scale_error == pytest.approx(np.log(2))


def test_orthogonality_error_is_the_distance_to_the_nearest_scaled_rotation(rng):
    u = rng.normal(size=(500, 3))
    matrix = rng.normal(size=(3, 3))
    found = r2(u @ np.linalg.inv(matrix), u)
    nearest, size = orthogonal_procrustes(np.eye(3), matrix)
    distance = np.linalg.norm(matrix - size / 3 * nearest) / np.linalg.norm(matrix)
    assert found.orthogonality_error == pytest.approx(distance, rel=1e-6)
    assert found.scale == pytest.approx(size / 3, rel=1e-6)
    # A map that keeps one direction of many is as far as can be: sqrt(1 - 1/3).
    flat = r2(u, u[:, [0, 0, 0]] * 1.0)
    assert flat.orthogonality_error == pytest.approx(np.sqrt(2 / 3), abs=1e-6)


def test_circular_and_categorical_factors(rng):
    angle, kind = rng.uniform(0, 2 * np.pi, 900), rng.integers(0, 3, 900)
    factors = open_factors({"pan": angle, "kind": np.array(["a", "b", "c"])[kind]}, periods={"pan": 2 * np.pi})
    z = np.column_stack([np.cos(angle + 1), np.sin(angle + 1), np.eye(3)[kind][:, :2]])
    np.testing.assert_allclose(r2(z, factors).per_factor, 1, atol=1e-9)
    # Half of cosine and sine is known from one of them.
    assert r2(z[:, :1], factors).per_factor[0] == pytest.approx(0.5, abs=0.05)
    only = r2(z, open_factors({"kind": np.array(["a", "b", "c"])[kind]}))
    assert np.isnan([only.orthogonality_error, only.scale, only.scale_error]).all() and only.value == pytest.approx(1)


def test_noise_is_not_above_zero_although_it_interpolates(rng):
    z, u = rng.normal(size=(100, 300)), rng.normal(size=(100, 4))
    found = r2(z, u)
    assert found.value < 0.05 and [alert.code for alert in found.alerts] == ["few_rows"]
    assert r2(z, u, folds=1).value == pytest.approx(1)
    assert -0.02 < r2(rng.normal(size=(5000, 5)), rng.normal(size=(5000, 4))).value <= 0


def test_constant_latents_explain_nothing_and_are_told(rng):
    found = r2(np.ones((60, 2)), rng.normal(size=(60, 2)))
    assert found.value <= 1e-12 and np.isnan(found.orthogonality_error)
    assert [alert.code for alert in found.alerts] == ["constant_latents"]


def test_refused(rng):
    z, u = noisy(rng, n=20)
    with pytest.raises(InputError, match="latents has 20 rows and factors has 19"):
        r2(z, u[:-1])
    with pytest.raises(InputError, match="Every factor is constant"):
        r2(z, np.ones((20, 1)))
    u[3, 1] = np.inf
    with pytest.raises(InputError, match="factors has inf at row 3, column 1"):
        r2(z, u)
