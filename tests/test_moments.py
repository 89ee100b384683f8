"""Moments against numpy on whole arrays and exact arithmetic; merging, hard offsets and scales; ranks."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nearid.base.errors import InputError
from nearid.moments import Moments, PairMoments, cholesky, eigen, leading_eigen, spectrum, total


def close(found: Moments, rows: np.ndarray, rtol: float = 1e-12) -> None:
    rows = rows.astype(np.float64)
    scatter = np.cov(rows.T, bias=True).reshape(rows.shape[1], -1) * len(rows)
    assert found.n == len(rows)
    np.testing.assert_allclose(found.mean, rows.mean(axis=0), rtol=rtol, atol=1e-12 * np.abs(rows).max())
    np.testing.assert_allclose(found.scatter, scatter, rtol=rtol, atol=rtol * np.abs(scatter).max())


def test_of_one_block_is_numpys_covariance(rng):
    close(Moments.of(rows := rng.normal(size=(500, 7))), rows)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_any_cut_merges_to_the_same_moments(sizes, seed):
    sizes = [*sizes, 5]
    rows = np.random.default_rng(seed).normal(loc=3, size=(sum(sizes), 4))
    close(total(Moments.of(part) for part in np.split(rows, np.cumsum(sizes)[:-1])), rows, rtol=1e-10)


def test_no_rows_change_nothing(rng):
    rows = rng.normal(size=(20, 3))
    close(Moments.zero(3) + Moments.of(rows) + Moments.of(rows[:0]), rows)


def test_float32_with_a_large_offset_is_exact_to_float64(rng):
    rows = (rng.normal(size=(4000, 3)) + 1e4).astype(np.float32)
    merged = total(Moments.of(part) for part in np.array_split(rows, 17))
    # The oracle sums the very same float32 values as fractions, without any rounding.
    column = [Fraction(float(v)) for v in rows[:, 0]]
    mean = sum(column) / len(column)
    exact = float(sum((v - mean) ** 2 for v in column))
    assert merged.scatter[0, 0] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("unit", [1e-20, 1.0, 1e20])
def test_units_do_not_matter(rng, unit):
    rows = rng.normal(size=(300, 4))
    scaled = total(Moments.of(part) for part in np.array_split(rows * unit, 5))
    np.testing.assert_allclose(scaled.scatter / unit / unit, Moments.of(rows).scatter, rtol=1e-10, atol=1e-10)


def test_rows_are_left_as_they_are(rng):
    rows = rng.normal(size=(10, 2)) + 1
    before = rows.copy()
    Moments.of(rows)
    np.testing.assert_array_equal(rows, before)


def test_sums_about_any_point_among_the_rows_give_the_same(rng):
    rows = rng.normal(size=(100, 3)) + 1e4
    z = rows - rows[17]
    close(Moments.from_sums(100, z.sum(axis=0), z.T @ z, rows[17]), rows, rtol=1e-10)


def test_pair_blocks(rng):
    x, y = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
    m = PairMoments.of(x, y)
    cx, cy = x - x.mean(axis=0), y - y.mean(axis=0)
    for found, expected in ((m.xx, cx.T @ cx), (m.xy, cx.T @ cy), (m.yy, cy.T @ cy)):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    o = m.about_origin()
    for found, expected in ((o.xx, x.T @ x), (o.xy, x.T @ y), (o.yy, y.T @ y)):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    assert not o.mean_x.any() and not o.mean_y.any()


def test_a_constant_column_has_no_scatter_at_all(rng):
    x = np.hstack([rng.normal(size=(1000, 2)), np.full((1000, 1), 0.1)])
    m = PairMoments.of(x, x)
    assert not m.xx[2].any() and not m.xy[:, 2].any() and m.xx[0, 0] > 0


def test_a_nearly_constant_float32_column_is_not_constant(rng):
    x = (1e4 + 1e-2 * rng.normal(size=(1000, 1))).astype(np.float32)
    assert PairMoments.of(x, x).xx[0, 0] > 0


def test_unpaired_blocks_are_refused(rng):
    with pytest.raises(InputError, match="x has 3 rows and y has 4"):
        PairMoments.of(rng.normal(size=(3, 2)), rng.normal(size=(4, 2)))


def test_blocks_of_one_array_merge(rng, monkeypatch):
    import nearid.engines.local as local

    monkeypatch.setattr(local, "BLOCK_BYTES", 1)
    x, y = rng.normal(size=(2000, 3)) + 7, rng.normal(size=(2000, 2))
    close(Moments.of(x), x, rtol=1e-10)
    np.testing.assert_allclose(PairMoments.of(x, y).xy, (x - x.mean(axis=0)).T @ y, atol=1e-8)


@given(st.floats(-50, 50), st.floats(-50, 50), st.integers(0, 2**32 - 1))
def test_a_column_that_is_constant_about_another_shift_is_silenced(value, shift, seed):
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.normal(size=300), np.full(300, value)])
    z = rows - [0.0, shift]
    found = Moments.from_sums(300, z.sum(axis=0), z.T @ z, np.array([0.0, shift]))
    assert not found.scatter[1].any() and found.scatter[0, 0] > 0


def test_moments_of_mapped_rows(rng):
    x, y = rng.normal(size=(50, 4)) + 3, rng.normal(size=(50, 3))
    a, b = rng.normal(size=(2, 4)), rng.normal(size=(5, 3))
    found, direct = PairMoments.of(x, y).through(a, b), PairMoments.of(x @ a.T, y @ b.T)
    for name in ("n", "mean_x", "mean_y", "xx", "xy", "yy"):
        np.testing.assert_allclose(getattr(found, name), getattr(direct, name), atol=1e-10)


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


@pytest.mark.parametrize(("n", "d"), [(200, 40), (200, 80), (60, 80), (30, 80)])
def test_leading_eigenvectors_are_those_of_all(rng, n, d):
    rows = rng.normal(size=(n, d)) * np.geomspace(1, 1e-3, d)
    rows[:, 3], rows[:, 5] = 0, rows[:, 6]
    scatter = rows.T @ rows
    values, vectors = leading_eigen(scatter, n, 8)
    expected, _ = np.linalg.eigh(scatter)
    np.testing.assert_allclose(values, expected[::-1][: len(values)], atol=1e-12 * expected[-1])
    np.testing.assert_allclose(scatter @ vectors, vectors * values[:8], atol=1e-11 * expected[-1])
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(8), atol=1e-10)


def test_leading_eigenvectors_of_numbers_that_are_none_are_no_numbers(rng):
    """A failure of LAPACK is not passed over."""
    scatter = np.cov(rng.normal(size=(64, 900)))
    scatter[3, 5] = scatter[5, 3] = np.nan
    try:
        values, vectors = leading_eigen(scatter, 900, 4)
    except np.linalg.LinAlgError:
        return
    assert np.isnan(values).any() and np.isnan(vectors).any()
