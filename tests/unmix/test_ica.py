"""The fit as a function: rows left out, the start, going on, canonical order, stability."""

import numpy as np
import pytest

import nearid.unmix.ica as room
from nearid.arrays import open_rows
from nearid.errors import InputError
from nearid.folds import row_moments
from nearid.unmix.contrast import CONTRASTS
from nearid.unmix.ica import fit_ica
from nearid.unmix.sweep import Sweeper
from nearid.unmix.whiten import fit_whitener


def test_rows_with_nan_are_left_out(rng):
    x = rng.laplace(size=(3000, 3))
    spoiled = np.vstack([x, [[np.nan, 0, 0]]])
    clean, found = fit_ica(open_rows(x)), fit_ica(open_rows(spoiled), drop_nonfinite=True)
    assert found.diagnostics.rows == 3000
    np.testing.assert_allclose(found.components, clean.components, atol=1e-6)


def test_the_start_parts_sources_by_kurtosis(rng):
    s = np.hstack([rng.laplace(size=(20_000, 5)) / np.sqrt(2), rng.uniform(-1, 1, size=(20_000, 5)) * np.sqrt(3)])
    whitener = fit_whitener(row_moments(open_rows(s))[0])
    sweeper = Sweeper(open_rows(s), None, s.mean(axis=0), CONTRASTS["logcosh"], np.dtype(np.float64))
    first = room._first(sweeper, whitener, 0)
    np.testing.assert_allclose(first @ first.T, np.eye(10), atol=1e-10)
    energy = (first @ whitener.forward * s.std(axis=0)) ** 2
    # Nearly all of each component lies in one kind of source, but for the stirring.
    heavy = energy[:, :5].sum(axis=1)
    assert np.minimum(heavy, 1 - heavy).mean() < 0.25
    assert not np.allclose(first, room._first(sweeper, whitener, 1))


def test_a_fit_goes_on_from_a_checkpoint(rng):
    x = open_rows(rng.laplace(size=(4000, 5)) @ rng.normal(size=(5, 5)))
    kept = []
    whole = fit_ica(x, tol=1e-9, keep=kept.append)
    again = fit_ica(x, tol=1e-9, resume=kept[4])
    np.testing.assert_allclose(again.components, whole.components, atol=1e-6 * np.abs(whole.components).max())
    with pytest.raises(InputError, match="of another fit"):
        fit_ica(open_rows(rng.laplace(size=(400, 3))), resume=kept[4])


def test_stability_tells_sources_from_noise(rng):
    x = np.column_stack([rng.laplace(size=(40_000, 3)), rng.normal(size=(40_000, 3))])
    found = fit_ica(open_rows(x), stability_runs=4).diagnostics
    assert found.gaussian.tolist() == [False] * 3 + [True] * 3
    assert found.stability[:3].min() > 0.98 > found.stability[3:].max()
    assert {c.kind for c in found.cautions} == {"gaussian", "unstable"}
    assert fit_ica(open_rows(x)).diagnostics.stability is None


def test_components_come_least_gaussian_first_with_positive_loadings(rng):
    x = np.column_stack([rng.standard_t(10, size=20_000), rng.laplace(size=20_000), rng.uniform(-1, 1, size=20_000)])
    found = fit_ica(open_rows(x), tol=1e-6)
    distance = np.abs(found.diagnostics.nongaussianity)
    assert np.all(np.diff(distance) <= 0) and found.kappa[-1] == min(found.kappa, key=abs)
    assert np.all(found.mixing[np.abs(found.mixing).argmax(axis=0), range(3)] > 0)
