"""The Gaussian test against rows that are Gaussian, and against sources that are not."""

import warnings

import numpy as np
import pytest
from scipy.stats import norm

from nearid import ICA
from nearid.ica.contrast import CONTRASTS
from nearid.ica.gaussian_null import searched_p_values


def fitted(x, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ICA(**options).fit(x)


SOURCES = {
    "uniform": lambda rng, shape: rng.uniform(-1, 1, shape),
    "Laplace": lambda rng, shape: rng.laplace(size=shape),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("n", "k", "fits"), [(300, 4, 15), (1000, 24, 2)])
def test_recovered_sources_are_not_called_gaussian(rng, source, n, k, fits):
    called = []
    for _ in range(fits):
        s = SOURCES[source](rng, (n, k))
        found = fitted(s)
        recovered = np.abs(np.corrcoef(found.transform(s).T, s.T)[:k, k:]).max(axis=1) > 0.95
        called += found.diagnostics_.gaussian[recovered].tolist()
    assert len(called) >= 12 and np.mean(called) <= 0.05


@pytest.mark.parametrize("contrast", CONTRASTS)
@pytest.mark.parametrize(("n", "k", "fits"), [(300, 4, 25), (1000, 24, 2), (500, 12, 6)])
def test_components_of_gaussian_rows_are_called_gaussian(rng, contrast, n, k, fits):
    x = rng.normal(size=(fits, n, k))
    called = [fitted(rows, contrast=contrast).diagnostics_.gaussian for rows in x]
    assert np.mean(called) >= 0.95


def test_gaussian_columns_beside_sources_are_called_gaussian(rng):
    called = []
    for _ in range(15):
        found = fitted(np.column_stack([rng.laplace(size=(2000, 3)), rng.normal(size=(2000, 3))])).diagnostics_
        assert not found.gaussian[:3].any()
        called.append(found.gaussian[3:])
    assert np.mean(called) >= 0.95


@pytest.mark.parametrize("contrast", ["logcosh", "exp"])
def test_a_single_component_is_tested_as_one_that_nobody_searched_for(contrast):
    # One column has nothing to search: the normal tail, but for the skewness of the mean contrast.
    z = 2.5
    for sign in (1, -1):
        p = searched_p_values(np.array([sign * z]), contrast, 3000)[0]
        assert norm.sf(z) < p < 4 * norm.sf(z)


def test_components_are_tested_one_after_another():
    n, z = 2000, np.array([40.0, -30.0, 2.4, 0.1])
    p = searched_p_values(z, "logcosh", n)
    # The last two are compared with two columns and one, not with four.
    assert (
        p[2]
        == searched_p_values(z[2:], "logcosh", n)[0]
        < searched_p_values(np.r_[2.4, 0.1, 0.1, 0.1], "logcosh", n)[0]
    )
    # However far the last one is, its p-value is no smaller than that of the one before.
    assert np.all(np.diff(p) >= 0) and p[0] < 1e-20
    np.testing.assert_array_equal(searched_p_values(z[::-1], "logcosh", n)[::-1], p)


def test_with_hardly_more_rows_than_components_nothing_can_be_told():
    z = np.full(10, 50.0)
    assert np.all(searched_p_values(z, "logcosh", 29) == 1) and np.all(searched_p_values(z, "logcosh", 30) < 1e-6)


def test_beyond_the_table_the_null_still_holds(rng):
    # The table ends at 32 columns.
    found = fitted(rng.normal(size=(640, 64))).diagnostics_
    assert found.gaussian.mean() >= 0.95 and np.abs(found.z).max() > 10
    # The reach is no wider than it must be.
    assert searched_p_values(np.r_[12.0, np.zeros(63)], "logcosh", 640)[0] < 1e-3
