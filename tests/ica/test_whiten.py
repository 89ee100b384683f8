"""Whitening on the hard cases, against sums in extended precision."""

import numpy as np
import pytest

import nearid.ica.whiten as room
from nearid.ica.whiten import fit_whitener, whiten_rows
from nearid.moments import Moments


def covariance(z):
    """Covariance with every sum in extended precision."""
    z = z.astype(np.longdouble)
    z = z - z.mean(axis=0)
    return (np.einsum("ni,nj->ij", z, z) / len(z)).astype(np.float64)


def whitened(found, x):
    return (x.astype(np.longdouble) - found.mean) @ found.forward.T


CASES = {
    "plain": (lambda x: x, 6),
    "offset 1e4 in float32": (lambda x: (x + 1e4).astype(np.float32), 6),
    "tiny": (lambda x: x * 1e-20, 6),
    "huge": (lambda x: x * 1e20, 6),
    "mixed scales": (lambda x: x * 10.0 ** np.array([-20, -10, 0, 5, 10, 20]), 6),
    "duplicate columns": (lambda x: np.hstack([x, x[:, :2], 3 * x[:, 2:3]]), 6),
    "constant column": (lambda x: np.hstack([x, np.full((len(x), 1), 0.1)]), 6),
    "rank two": (lambda x: x[:, :2] @ np.ones((2, 6)) * np.arange(1, 7) + x[:, 1:2] * np.arange(6), 2),
    "few rows": (lambda x: np.hstack([x, x**2, x**3])[:9], 8),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("form", ["pca", "zca"])
def test_the_covariance_becomes_the_identity_on_what_exists(rng, name, form):
    make, rank = CASES[name]
    x = make(rng.laplace(size=(800, 6)) @ rng.normal(size=(6, 6)))
    found = fit_whitener(Moments.of(x), form=form)
    assert found.rank == rank
    z = whitened(found, x)
    expected = np.eye(rank) if form == "pca" else found.forward @ found.backward.T.T
    np.testing.assert_allclose(covariance(z), expected, atol=1e-7)
    back = z @ found.backward.T + found.mean
    size = np.abs(x - x.mean(axis=0, dtype=np.float64)).max(axis=0) + np.finfo(np.float64).tiny
    assert np.all(np.abs(back - x) <= 1e-6 * size + 1e-12 * np.abs(found.mean))


def test_leading_components_are_those_of_largest_variance(rng):
    x = rng.normal(size=(500, 5)) * [5, 4, 3, 2, 1]
    found = fit_whitener(Moments.of(x), components=2)
    assert found.forward.shape == (2, 5) and found.rank == 5
    np.testing.assert_allclose(found.variances, np.linalg.eigvalsh(np.cov(x.T, bias=True))[::-1])
    leading = np.linalg.eigh(np.cov(x.T))[1][:, :-3:-1]
    np.testing.assert_allclose(np.abs(found.forward @ leading), np.diag(found.variances[:2] ** -0.5), atol=1e-9)


def test_a_relative_cut(rng):
    x = rng.normal(size=(500, 3)) * [1, 1, 1e-4]
    assert fit_whitener(Moments.of(x)).rank == 3 and fit_whitener(Moments.of(x), rtol=1e-6).rank == 2


@pytest.mark.parametrize("components", [None, 3])
def test_the_largest_loading_of_each_direction_is_positive(rng, components):
    x = rng.normal(size=(400, 5)) * [5, 4, 3, 2, 1] @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
    for signs in ([1, 1, 1, 1, 1], [-1, 1, -1, 1, 1], [-1, -1, -1, -1, -1]):
        found = fit_whitener(Moments.of(x * signs), components=components)
        for loadings in found.backward.T:
            assert loadings[np.abs(loadings).argmax()] > 0
        # Rows are whitened by the same directions, in the same sense.
        np.testing.assert_allclose(found.forward @ found.backward, np.eye(len(found.forward)), atol=1e-9)


def test_zca_stays_near_the_rows(rng):
    """Of all ways to whiten, it keeps every column nearest to itself: the root of the inverse covariance."""
    x = rng.normal(size=(400, 4)) @ rng.normal(size=(4, 4))
    values, vectors = np.linalg.eigh(np.cov(x.T, bias=True))
    found = fit_whitener(Moments.of(x), form="zca")
    np.testing.assert_allclose(found.forward, vectors / np.sqrt(values) @ vectors.T, atol=1e-7)
    np.testing.assert_allclose(found.backward, vectors * np.sqrt(values) @ vectors.T, atol=1e-7)


WIDE = {
    "plain": (lambda x: x, 29),
    "offset in float32": (lambda x: (x + 100).astype(np.float32), 29),
    "mixed scales": (lambda x: x * 10.0 ** np.linspace(-6, 6, 40), 29),
    "constant columns": (lambda x: np.where(np.arange(40) % 9 == 0, 0.1, x), 29),
    "rank eleven": (lambda x: x[:, :11] @ np.cos(np.arange(440.0) ** 2).reshape(11, 40), 11),
    "two rows": (lambda x: x[:2], 1),
}


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("components", [None, 12, 4])
def test_rows_that_are_fewer_than_columns(rng, name, components):
    make, rank = WIDE[name]
    x = make(rng.laplace(size=(30, 40)))
    found = whiten_rows(x, components=components)
    k = min(components or rank, rank)
    assert found.rank == rank and found.forward.shape == (k, 40) and len(found.variances) == rank
    z = whitened(found, x)
    np.testing.assert_allclose(covariance(z), np.eye(k), atol=1e-7)
    centred = x.astype(np.longdouble) - x.mean(axis=0, dtype=np.longdouble)
    singular = np.linalg.svd(centred.astype(np.float64), compute_uv=False)[:rank]
    np.testing.assert_allclose(found.variances[:k], singular[:k] ** 2 / len(x), rtol=1e-6)
    if name != "mixed scales":
        np.testing.assert_allclose(found.variances, singular**2 / len(x), rtol=1e-4)
    np.testing.assert_allclose(found.backward, (centred.T @ z / len(x)).astype(float), atol=1e-7 * singular[0])
    assert (found.backward.max(axis=0) >= -found.backward.min(axis=0)).all()


@pytest.mark.parametrize("stored", [np.float32, np.float64])
def test_a_few_leading_directions_are_those_of_all(rng, monkeypatch, stored):
    x = (rng.laplace(size=(300, 24)) @ rng.normal(size=(24, 24)) + 10).astype(stored)
    few = fit_whitener(Moments.of(x), components=5, stored=np.dtype(stored))
    monkeypatch.setattr(room, "_leading_columns", lambda *_: None)
    monkeypatch.setattr(room, "FEW", 0.0)
    usual = fit_whitener(Moments.of(x), components=5, stored=np.dtype(stored))
    assert few.rank == usual.rank == 24
    np.testing.assert_allclose(few.variances, usual.variances, rtol=1e-7)
    np.testing.assert_allclose(few.forward, usual.forward, atol=1e-7)
    np.testing.assert_allclose(few.backward, usual.backward, atol=1e-7)


@pytest.mark.parametrize("count", [1, 7, 25, 60])
def test_leading_eigenvectors(rng, count):
    a = rng.normal(size=(100, 130)) * np.logspace(0, -1, 130)
    values, vectors = room._leading(a @ a.T, count, 100)
    expected = np.linalg.eigh(a @ a.T)
    np.testing.assert_allclose(values, expected[0][::-1], rtol=1e-9)
    vectors = vectors[:, :count]
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-10)
    np.testing.assert_allclose(a @ (a.T @ vectors), vectors * values[:count], rtol=1e-8, atol=1e-8)
