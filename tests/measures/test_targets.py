"""The moments behind MCC and R2: columns of factors in their places, whatever way the factors come in."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.linear_model import LinearRegression

import nearid
from nearid.base.errors import InputError
from nearid.folds import assign
from nearid.measures.factors import open_factors
from nearid.measures.targets import Inputs
from nearid.moments import PairMoments


def gathered(z, u, folds=1, **options):
    return Inputs(z, u, **options).moments(folds, random_state=0)


def test_blocks_point_at_the_columns_of_each_factor(rng):
    z, kinds = rng.normal(size=(50, 2)), np.array(["a", "b", "c"])[rng.integers(0, 3, 50)]
    table = {"size": rng.normal(size=50), "kind": kinds, "level": rng.normal(size=50)}
    known = open_factors(table)
    for source in (known, table):
        found = gathered(z, source)
        assert found.names == ("size", "kind", "level") and found.kinds == ("continuous", "categorical", "continuous")
        assert found.blocks == (slice(0, 1), slice(1, 4), slice(4, 5))
    whole = PairMoments.of(z, np.hstack([factor.columns for factor in known.items]))
    np.testing.assert_allclose(found.source.all.xy, whole.xy, atol=1e-10)


def test_constant_factors_are_left_out_of_what_is_streamed(rng):
    u = np.column_stack([rng.normal(size=50), np.full(50, 0.1), rng.normal(size=50)])
    found = gathered(rng.normal(size=(50, 2)), u, folds=5)
    assert found.names == ("0", "2") and found.blocks == (slice(0, 1), slice(2, 3))
    assert [alert.code for alert in found.alerts] == ["constant_factor"]


def test_splits_with_one_fold_are_all_rows(rng):
    found = gathered(rng.normal(size=(50, 2)), rng.normal(size=(50, 2)))
    assert found.splits(lambda k, train, test: (k, train.n, test.n)) == [(0, 50, 50)]
    found = gathered(rng.normal(size=(50, 2)), rng.normal(size=(50, 2)), folds=5)
    assert found.splits(lambda k, train, test: (k, train.n, test.n)) == [(k, 40, 10) for k in range(5)]


def test_named_columns_that_do_not_fit_are_refused(rng):
    z = rng.normal(size=(20, 2))
    with pytest.raises(InputError, match="columns of factors differ in length"):
        gathered(z, {"a": np.arange(20.0), "b": np.arange(19.0)})
    with pytest.raises(InputError, match="latents has 20 rows and factors has 19"):
        gathered(z, {"a": np.arange(19.0)})


def test_too_many_rows_dropped_is_refused(rng):
    z = rng.normal(size=(20, 2))
    z[:18] = np.nan
    with pytest.raises(InputError, match="Only 2 rows are left without NaN or Inf, too few for 5 folds"):
        gathered(z, rng.normal(size=(20, 1)), folds=5, drop_nonfinite=True)


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
    found = nearid.r2(z, u, ridge=0)
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
def test_wide_latents_are_decomposed_once_in_the_space_of_the_rows(rng, monkeypatch, shape):
    """Products of 2000 latents took seconds for each of some 30 values; those of 30,000 need 7 GB."""
    solved = []
    for name in ("svd", "qr", "eigh"):
        monkeypatch.setattr(np.linalg, name, spied(getattr(np.linalg, name), solved))
    z, u = wide(rng, *shape)
    assert np.isfinite(nearid.mcc(z, u).value) and np.isfinite(nearid.r2(z, u).value)
    # No side is wider than the rows, and what has all the latents is solved once: not for each fold or factor.
    n, d, _ = shape
    assert solved and all(min(sizes) <= n for sizes in solved)
    assert sum(d in sizes for sizes in solved) <= 3
    # Penalties are judged by every pair of the five folds at most.
    assert len(solved) <= 3 + 10


def spied(function, seen):
    """The same function, which notes the shape of its first argument."""

    def spy(matrix, *arguments, **options):
        seen.append(matrix.shape)
        return function(matrix, *arguments, **options)

    return spy
