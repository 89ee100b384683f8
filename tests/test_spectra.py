"""Rank and factors of scatters, whatever the units."""

import numpy as np
import pytest

from nearid.moments import Moments
from nearid.spectra import cholesky, eigen, spectrum


@pytest.mark.parametrize("units", [np.ones(6), 10.0 ** np.arange(-9, 9, 3)])
def test_rank_does_not_depend_on_units(rng, units):
    rows = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 6)) * units
    assert spectrum(Moments.of(rows).scatter, 200).rank == 4


def test_few_rows_span_few_directions(rng):
    assert spectrum(Moments.of(rng.normal(size=(5, 9))).scatter, 5).rank == 4


def test_constant_columns_have_no_direction(rng):
    rows = np.hstack([rng.normal(size=(50, 3)), np.zeros((50, 2))])
    s = spectrum(Moments.of(rows).scatter, 50)
    assert s.rank == 3 and not s.vectors[3:].any()


def test_cholesky_rebuilds_the_scatter(rng):
    scatter = Moments.of(rng.normal(size=(90, 5)) * [1e-6, 1, 1, 1, 1e6]).scatter
    f = cholesky(scatter, 90)
    assert f is not None
    root = f.sizes[:, None] * f.lower
    np.testing.assert_allclose(root @ root.T, scatter, rtol=1e-10)


@pytest.mark.parametrize("kind", ["few rows", "copy", "constant"])
def test_cholesky_refuses_what_it_cannot_resolve(rng, kind):
    rows = rng.normal(size=(5 if kind == "few rows" else 90, 6))
    if kind == "copy":
        rows[:, 1] = rows[:, 0]
    if kind == "constant":
        rows[:, 1] = 0
    assert cholesky(Moments.of(rows).scatter, len(rows)) is None


def test_few_rows_have_the_eigenvalues_of_the_whole_scatter(rng):
    scatter = Moments.of(rng.normal(size=(12, 60)) * np.geomspace(1, 1e3, 60)).scatter
    values, vectors = eigen(scatter, 12)
    assert vectors.shape == (60, 12)
    np.testing.assert_allclose(values[:11], np.linalg.eigvalsh(scatter)[::-1][:11], rtol=1e-9)
    np.testing.assert_allclose(vectors * values @ vectors.T, scatter, atol=1e-9 * values[0])
