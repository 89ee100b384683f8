"""Rows held whitened: the sums of the passes that read them, whatever the pieces and threads."""

import numpy as np
import pytest

import nearid.ica.held as room
from nearid.arrays import open_rows
from nearid.folds import row_moments
from nearid.ica.contrast import CONTRASTS, RADIAL
from nearid.ica.passes import RowPasses
from nearid.ica.whiten import fit_whitener


@pytest.mark.parametrize("contrast", [*CONTRASTS.values(), RADIAL], ids=lambda c: c.name)
@pytest.mark.parametrize("threads", [False, True])
def test_sums_are_those_of_passes_over_the_rows(rng, monkeypatch, contrast, threads):
    monkeypatch.setattr(room, "PIECE_LENGTH", 1024)
    monkeypatch.setattr(room, "WORTH_THREADS", 1 if threads else 1 << 30)
    x = rng.laplace(size=(1000, 5)) @ rng.normal(size=(5, 5)) + 7
    kept = rng.random(1000) < 0.8
    moments, _ = row_moments(open_rows(x), only=kept)
    whitener = fit_whitener(moments, components=4)
    held = room.hold(open_rows(x), kept, whitener, contrast, np.dtype(np.float64))
    assert held.n == kept.sum() and [len(piece) for piece in held.pieces] == [4] * len(held.pieces)
    assert len(held.pieces) == -(-held.n // 128)
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    passes = RowPasses(open_rows(x), kept, moments.mean, contrast, np.dtype(np.float64))
    found = held.contrast_sums(rotation, True, True)
    expected = passes.contrast_sums(rotation @ whitener.forward, True, True)
    for name in ("products", "slopes", "values", "bends"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-11)
    assert held.contrast_sums(rotation).bends is None


def test_single_precision_keeps_the_sums(rng):
    x = (rng.laplace(size=(9000, 3)) + 100).astype(np.float32)
    moments, _ = row_moments(open_rows(x))
    whitener = fit_whitener(moments, stored=x.dtype)
    coarse, fine = (
        room.hold(open_rows(x), None, whitener, CONTRASTS["logcosh"], np.dtype(d)).contrast_sums(np.eye(3), True)
        for d in (np.float32, np.float64)
    )
    np.testing.assert_allclose(coarse.products, fine.products, atol=1e-6)
    np.testing.assert_allclose(coarse.values, fine.values, atol=1e-6)
