"""The fused pass against whole-array formulas."""

import numpy as np
import pytest

import nearid.engines.local as local
import nearid.unmix.sweep as room
from nearid.arrays import open_rows
from nearid.unmix.contrast import CONTRASTS
from nearid.unmix.sweep import Sweeper


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-4), (np.float64, 1e-10)])
def test_sums_are_those_of_whole_arrays(rng, monkeypatch, dtype, rtol):
    monkeypatch.setattr(local, "BLOCK_BYTES", 1)
    monkeypatch.setattr(room, "PIECE_BYTES", 1)
    x = (rng.normal(size=(1500, 4)) + 1000).astype(dtype)
    mean, unmixing = x.mean(axis=0, dtype=np.float64), rng.normal(size=(3, 4))
    found = Sweeper(open_rows(x), None, mean, CONTRASTS["logcosh"], np.dtype(dtype)).sweep(unmixing, True)
    centred = x.astype(np.float64) - mean
    g = np.tanh(centred @ unmixing.T)
    np.testing.assert_allclose(found.products, g.T @ centred / 1500, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found.slopes, 1 - (g**2).mean(axis=0), rtol=rtol)
    np.testing.assert_allclose(found.values, np.log(np.cosh(centred @ unmixing.T)).mean(axis=0), rtol=rtol)


def test_rows_left_out_and_every_other_block(rng, monkeypatch):
    monkeypatch.setattr(local, "BLOCK_BYTES", 1)
    x = rng.normal(size=(1024, 2))
    kept = np.ones(1024, dtype=bool)
    kept[::3] = False
    sweeper = Sweeper(open_rows(x), kept, np.zeros(2), CONTRASTS["cube"], np.dtype(np.float64), step=2)
    used = np.flatnonzero(kept & ((np.arange(1024) // 256) % 2 == 0))
    np.testing.assert_allclose(sweeper.sweep(np.eye(2)).products, (x[used] ** 3).T @ x[used] / len(used))
