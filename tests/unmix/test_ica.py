"""The fit as a function: rows left out, the start on half of the rows, canonical order."""

import numpy as np

import nearid.engines.local as local
from nearid.arrays import open_rows
from nearid.moments import Moments
from nearid.unmix.ica import fit_ica


def test_rows_with_nan_are_left_out(rng):
    x = rng.laplace(size=(3000, 3))
    spoiled = np.vstack([x, [[np.nan, 0, 0]]])
    clean, found = fit_ica(open_rows(x)), fit_ica(open_rows(spoiled), drop_nonfinite=True)
    assert found.n == 3000
    np.testing.assert_allclose(found.components, clean.components, atol=1e-6)


def test_a_start_on_half_of_the_rows_ends_at_the_same_place(rng, monkeypatch):
    x = rng.laplace(size=(8000, 4)) @ rng.normal(size=(4, 4))
    whole = fit_ica(open_rows(x), tol=1e-8)
    monkeypatch.setattr(local, "BLOCK_BYTES", 1)
    halved = fit_ica(open_rows(x), tol=1e-8)
    np.testing.assert_allclose(halved.components, whole.components, atol=1e-6 * np.abs(whole.components).max())


def test_a_fit_without_some_rows_goes_on_from_one_with_them(rng):
    x = rng.laplace(size=(6000, 5)) @ rng.normal(size=(5, 5))
    kept = np.arange(6000) % 5 > 0
    cold = fit_ica(open_rows(x[kept]), tol=1e-9)
    start = fit_ica(open_rows(x)).components
    warm = fit_ica(open_rows(x), moments=Moments.of(x[kept]), kept=kept, start=start, tol=1e-9)
    assert warm.n == 4800 and len(warm.solution.gradients) < len(cold.solution.gradients)
    # Turned by the signs and order of the start only: the optimum is that of the kept rows.
    match = np.abs(warm.components @ cold.mixing)
    np.testing.assert_allclose(np.sort(match, axis=1)[:, -1], 1, atol=1e-6)
    assert np.sort(match, axis=1)[:, :-1].max() < 1e-6


def test_a_start_of_another_rank_is_left_aside(rng):
    x = rng.laplace(size=(500, 3))
    found = fit_ica(open_rows(x), start=np.ones((2, 3)))
    np.testing.assert_array_equal(found.components, fit_ica(open_rows(x)).components)


def test_components_come_least_gaussian_first_with_positive_loadings(rng):
    x = np.column_stack([rng.standard_t(10, size=20_000), rng.laplace(size=20_000), rng.uniform(-1, 1, size=20_000)])
    found = fit_ica(open_rows(x), tol=1e-6)
    distance = np.abs(found.values - found.contrast.gaussian)
    assert np.all(np.diff(distance) <= 0) and found.kappa[-1] == min(found.kappa, key=abs)
    assert np.all(found.mixing[np.abs(found.mixing).argmax(axis=0), range(3)] > 0)
