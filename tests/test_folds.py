"""Folds: held-out rows, passes, and rows that repeat others."""

import numpy as np
import pytest

import nearid.engines.local as local
from nearid.arrays import open_rows, pair_rows
from nearid.base.errors import InputError
from nearid.folds import assign, fold_moments, pair_traits, repeated_rows, row_moments
from nearid.moments import Moments, PairMoments


def pair(x, y):
    return pair_rows(open_rows(x, name="left"), open_rows(y, name="right"))


def test_assignment_is_balanced_and_seeded():
    a = assign(103, 5, 7)
    assert set(np.bincount(a)) == {20, 21}
    np.testing.assert_array_equal(a, assign(103, 5, 7))
    assert not np.array_equal(a, assign(103, 5, 8))


@pytest.mark.parametrize("block_bytes", [1, 16 << 20])
def test_fold_moments_match_each_folds_own_rows(rng, monkeypatch, block_bytes):
    monkeypatch.setattr(local, "BLOCK_BYTES", block_bytes)
    x, y = rng.normal(size=(1000, 4)) + 9, rng.normal(size=(1000, 3))
    fold = assign(1000, 3, 0)
    parts = fold_moments(pair(x, y), fold, 3)
    for k in range(3):
        train, test = parts.split(k)
        for found, rows in ((train, fold != k), (test, fold == k)):
            expected = PairMoments.of(x[rows], y[rows])
            assert found.n == expected.n
            for block in ("mean_x", "mean_y", "xx", "xy", "yy"):
                np.testing.assert_allclose(getattr(found, block), getattr(expected, block), rtol=1e-9, atol=1e-9)


def test_the_result_is_the_same_bytes_whatever_the_threads(rng, monkeypatch):
    monkeypatch.setattr(local, "BLOCK_BYTES", 1)
    x, y = rng.normal(size=(3000, 4)), rng.normal(size=(3000, 4))
    found = []
    for cores in (1, 2, 3):
        monkeypatch.setattr(local, "cores", lambda cores=cores: cores)
        found.append(fold_moments(pair(x, y), assign(3000, 5, 0), 5).all.xy.tobytes())
    assert len(set(found)) == 1


def test_moments_of_a_part_of_the_rows_ignore_the_others(rng):
    x = rng.normal(size=(1000, 4)) + 9
    only = rng.random(1000) < 0.5
    x[np.flatnonzero(~only)[3]] = np.nan
    found, expected = row_moments(open_rows(x), only=only)[0], Moments.of(x[only])
    assert found.n == expected.n
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(found.scatter, expected.scatter, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_bad_value_is_named(rng, bad):
    x, y = rng.normal(size=(700, 3)), rng.normal(size=(700, 2))
    y[411, 1] = y[600, 0] = bad
    with pytest.raises(InputError, match=rf"right has {bad} at row 411, column 1 .*drop-nonfinite"):
        fold_moments(pair(x, y), assign(700, 5, 0), 5)


def test_a_bad_value_is_named_by_its_own_row_when_paired_by_id(rng):
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    y[3, 1] = np.nan
    order = rng.permutation(20)
    joined = pair_rows(open_rows(x, ids=np.arange(20)), open_rows(y, ids=order, name="right"))
    with pytest.raises(InputError, match="right has nan at row 3, column 1"):
        fold_moments(joined, assign(20, 2, 0), 2)


def test_bad_rows_are_dropped_in_pairs(rng):
    x, y = rng.normal(size=(700, 3)), rng.normal(size=(700, 2))
    x[5, 0], y[6, 1] = np.nan, np.inf
    parts = fold_moments(pair(x, y), assign(700, 5, 0), 5, drop_nonfinite=True)
    good = np.delete(np.arange(700), [5, 6])
    np.testing.assert_array_equal(np.flatnonzero(parts.kept), good)
    np.testing.assert_allclose(parts.all.xy, PairMoments.of(x[good], y[good]).xy, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("unit", [1e200, 1e100, 1e-100])
def test_values_whose_powers_leave_float64_are_refused(rng, unit):
    with pytest.raises(InputError, match="of right leave the range of float64"):
        fold_moments(pair(rng.normal(size=(50, 2)), rng.normal(size=(50, 2)) * unit), assign(50, 2, 0), 2)


def test_a_shift_far_from_the_rows_is_noticed(rng):
    # The rows that the shift is taken from are all dropped, so the first sums are about 0.
    x = rng.normal(size=(5000, 3)) + 1e9
    y = x @ rng.normal(size=(3, 3))
    sampled = np.unique(np.linspace(0, 4999, 256).astype(int))
    x[sampled] = np.nan
    parts = fold_moments(pair(x, y), assign(5000, 5, 0), 5, drop_nonfinite=True)
    good = np.delete(np.arange(5000), sampled)
    known = PairMoments.of(x[good], y[good]).xx
    np.testing.assert_allclose(parts.all.xx, known, rtol=0, atol=1e-8 * np.diag(known).min())


@pytest.mark.parametrize("drift", [1e3, 1e8])
def test_sorted_rows_lose_no_digits(rng, drift):
    x = np.sort(rng.normal(size=(5000, 2)), axis=0) + np.linspace(0, drift, 5000)[:, None]
    found, centred = fold_moments(pair(x, x), assign(5000, 5, 0), 5).all.xx, x - x.mean(axis=0)
    np.testing.assert_allclose(found, centred.T @ centred, rtol=1e-9)


@pytest.mark.parametrize(("n", "folds"), [(100, 0), (100, 256), (100, 51), (1, 1)])
def test_impossible_folds_are_refused(n, folds):
    with pytest.raises(InputError, match="folds"):
        assign(n, folds, 0)


def test_values_that_vanish_when_squared_are_not_called_constant(rng):
    with pytest.raises(InputError, match="leave the range"):
        fold_moments(pair(rng.normal(size=(50, 2)) * 1e-200, rng.normal(size=(50, 2))), assign(50, 2, 0), 2)


def test_more_rows_than_memory_are_refused_before_anything_is_allocated():
    with pytest.raises(InputError, match=r"1000000000000 rows needs 64 TB of memory"):
        assign(10**12, 5, 0)


def test_more_columns_than_memory_are_refused_by_name(rng, monkeypatch):
    monkeypatch.setattr("nearid.base.limits.available_memory", lambda: 10_000)
    rows = open_rows(rng.normal(size=(40, 10)), name="wide.npy")
    with pytest.raises(InputError, match=r"wide.npy \(20 columns\) needs .* principal components"):
        fold_moments(pair_rows(rows, open_rows(rng.normal(size=(40, 10)), name="wide.npy")), assign(40, 5, 0), 5)


def test_infinities_of_both_signs_are_named_without_a_warning(rng):
    x = rng.normal(size=(40, 2))
    x[3, 0], x[4, 0] = np.inf, -np.inf
    with np.errstate(all="raise"), pytest.raises(InputError, match="inf at row 3, column 0"):
        fold_moments(pair_rows(open_rows(x), open_rows(x)), np.zeros(40, dtype=np.uint8), 1)


@pytest.mark.parametrize("size", [1.0, 1e-308, 1e-310, 5e-324, 1e300])
def test_rows_of_any_size_have_traits_of_their_own(size, rng):
    """Denormal columns overflowed where their spread was divided by."""
    x = np.round(rng.normal(size=(200, 3)), 2) * size
    with np.errstate(all="raise", under="ignore"):
        found = pair_traits(x, x)
    assert np.isfinite(found).all()
    copies = pair_traits(np.vstack([x, x[:20]]), np.vstack([x, x[:20]]))
    if size != 5e-324:
        assert not repeated_rows(found) and repeated_rows(copies)
