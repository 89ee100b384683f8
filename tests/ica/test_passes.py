"""The fused pass against whole-array formulas."""

import numpy as np
import pytest

import nearid.engines.local as local
import nearid.ica.passes as room
from nearid.arrays import open_rows
from nearid.ica.contrast import CONTRASTS
from nearid.ica.passes import RowPasses


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-4), (np.float64, 1e-10)])
def test_sums_are_those_of_whole_arrays(rng, monkeypatch, dtype, rtol):
    monkeypatch.setattr(local, "BLOCK_BYTES", 1)
    monkeypatch.setattr(room, "PIECE_BYTES", 1)
    x = (rng.normal(size=(1500, 4)) + 1000).astype(dtype)
    mean, unmixing = x.mean(axis=0, dtype=np.float64), rng.normal(size=(3, 4))
    found = RowPasses(open_rows(x), None, mean, CONTRASTS["logcosh"], np.dtype(dtype)).contrast_sums(unmixing, True)
    centred = x.astype(np.float64) - mean
    y = centred @ unmixing.T
    g = np.tanh(y)
    np.testing.assert_allclose(found.products, g.T @ y / 1500, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found.slopes, 1 - (g**2).mean(axis=0), rtol=rtol)
    np.testing.assert_allclose(found.values, np.log(np.cosh(centred @ unmixing.T)).mean(axis=0), rtol=rtol)


def test_rows_left_out(rng, monkeypatch):
    monkeypatch.setattr(local, "BLOCK_BYTES", 1)
    x = rng.normal(size=(1024, 2))
    kept = np.ones(1024, dtype=bool)
    kept[::3] = False
    passes = RowPasses(open_rows(x), kept, np.zeros(2), CONTRASTS["cube"], np.dtype(np.float64))
    np.testing.assert_allclose(passes.contrast_sums(np.eye(2)).products, (x[kept] ** 3).T @ x[kept] / kept.sum())


def test_bends_are_means_of_slopes_and_squares(rng):
    x = rng.normal(size=(500, 3))
    passes = RowPasses(open_rows(x), None, np.zeros(3), CONTRASTS["logcosh"], np.dtype(np.float64))
    found, without = passes.contrast_sums(np.eye(3), True, True), passes.contrast_sums(np.eye(3), True)
    np.testing.assert_allclose(found.bends, (1 - np.tanh(x) ** 2).T @ x**2 / 500)
    np.testing.assert_array_equal(found.products, without.products)
    np.testing.assert_array_equal(found.values, without.values)
    assert without.bends is None


def test_single_precision_is_enough_at_condition_100(rng):
    scales = np.logspace(0, -2, 6)
    z = rng.laplace(size=(20_000, 6))
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    x = (z * scales @ turn.T).astype(np.float32)
    unmixing, mean = (turn / scales).T, x.mean(axis=0, dtype=np.float64)
    coarse = RowPasses(open_rows(x), None, mean, CONTRASTS["logcosh"], np.dtype(np.float32)).contrast_sums(unmixing)
    fine = RowPasses(open_rows(x), None, mean, CONTRASTS["logcosh"], np.dtype(np.float64)).contrast_sums(unmixing)
    np.testing.assert_allclose(coarse.products, fine.products, atol=2e-6)
