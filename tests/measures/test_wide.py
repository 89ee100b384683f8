"""Latents that outnumber the rows: the same definitions as for few latents, without products of all latents."""

import time

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.linear_model import LinearRegression

import nearid
from nearid.base.errors import InputError
from nearid.folds import assign


def wide(rng, n=60, d=200, m=3):
    u = rng.normal(size=(n, m))
    z = rng.normal(size=(n, d)) + 5
    z[:, :m] += 3 * u
    return z, u


@pytest.mark.parametrize("scales", [1.0, 1e4])
def test_r2_is_that_of_the_least_norm_regression_in_every_fold(rng, scales):
    z, u = wide(rng)
    z = z * np.geomspace(1 / scales, scales, z.shape[1])
    fold = assign(60, 5, 0)
    error, spread = np.zeros(3), np.zeros(3)
    for k in range(5):
        train, test = fold != k, fold == k
        made = LinearRegression().fit(z[train], u[train]).predict(z[test])
        error += np.sum((u[test] - made) ** 2, axis=0)
        spread += np.sum((u[test] - u[train].mean(axis=0)) ** 2, axis=0)
    found = nearid.r2(z, u)
    np.testing.assert_allclose(found.per_factor, 1 - error / spread, atol=1e-7)
    coefficients = LinearRegression().fit(z, u).coef_.T * z.std(axis=0)[:, None] / u.std(axis=0)
    np.testing.assert_allclose(found.matrix, np.abs(coefficients), atol=1e-6)
    assert found.matrix.shape == (200, 3) and "few_rows" in {a.code for a in found.alerts}


def test_mcc_is_that_of_the_matching_of_the_other_folds(rng):
    z, u = wide(rng)
    fold = assign(60, 5, 0)
    values = np.zeros((5, 3))
    for k in range(5):
        train, test = (np.corrcoef(z[at], u[at], rowvar=False)[:200, 200:] for at in (fold != k, fold == k))
        rows, columns = linear_sum_assignment(np.abs(train), maximize=True)
        values[k, columns] = np.sign(train[rows, columns]) * test[rows, columns]
    found = nearid.mcc(z, u)
    np.testing.assert_allclose(found.per_factor, values.mean(axis=0), atol=1e-12)
    assert found.matched.tolist() == [0, 1, 2]


@pytest.mark.parametrize("folds", [1, 4])
def test_values_do_not_jump_where_latents_become_as_many_as_rows(rng, folds):
    """One latent more than rows, a constant, changes the way but not the values."""
    z, u = wide(rng, n=40, d=39)
    more = np.column_stack([z, np.full((40, 2), 7.0)])
    for measure in (nearid.mcc, nearid.r2):
        few, many = measure(z, u, folds=folds), measure(more, u, folds=folds)
        np.testing.assert_allclose(many.per_factor, few.per_factor, atol=1e-7)
        assert "constant_latents" in {a.code for a in many.alerts}


def test_rows_with_nan_are_refused_by_name_or_dropped(rng):
    z, u = wide(rng)
    spoiled, longer = np.vstack([z, z[:1]]), np.vstack([u, u[:1]])
    spoiled[60, 7] = np.nan
    for measure in (nearid.mcc, nearid.r2):
        with pytest.raises(InputError, match="latents has nan at row 60, column 7"):
            measure(spoiled, longer)
        found = measure(spoiled, longer, drop_nonfinite=True)
        assert "dropped_rows" in {a.code for a in found.alerts}
    with pytest.raises(InputError, match="Fourth powers of the values of latents leave the range"):
        nearid.r2(z * 1e200, u)


@pytest.mark.parametrize("shape", [(200, 2000, 20), (12, 30_000, 2)])
def test_wide_latents_take_no_time(rng, shape):
    """Products of 2000 latents took seconds for each of some 30 values; those of 30,000 need 7 GB."""
    z, u = wide(rng, *shape)
    began = time.process_time()
    assert np.isfinite(nearid.mcc(z, u).value) and np.isfinite(nearid.r2(z, u).value)
    assert time.process_time() - began < 5
