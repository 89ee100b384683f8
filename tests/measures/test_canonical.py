"""Held-out canonical correlations: of all directions where rows are many, of fewer where they are few; intervals."""

import numpy as np
import pytest

from nearid import cca, svcca
from nearid.arrays import open_rows, pair_rows
from nearid.folds import assign, fold_moments
from nearid.measures.canonical import Canonical, Grid, canonical_correlations, held_out, pooled
from nearid.measures.similarity import cka_influence, linear_cka
from nearid.moments import PairMoments


def folded(x, y, folds=5):
    pair, fold = pair_rows(open_rows(x), open_rows(y)), assign(len(x), folds, 0)
    return fold_moments(pair, fold, folds), fold


def spread(rng, n, d, decay):
    """Rows whose principal components have variances that fall like a power, in a random basis."""
    return rng.normal(size=(n, d)) * np.arange(1.0, d + 1) ** -decay @ np.linalg.qr(rng.normal(size=(d, d)))[0]


def plain(x, y, folds=5):
    """Held-out correlations along every direction, fold by fold."""
    fold, sums = assign(len(x), folds, 0), []
    for k in range(folds):
        a, b = (z[fold != k] - z[fold != k].mean(axis=0) for z in (x, y))
        (ua, sa, va), (ub, sb, vb) = (np.linalg.svd(z, full_matrices=False) for z in (a, b))
        u, _, vt = np.linalg.svd(ua.T @ ub)
        left, right = ((z[fold == k] - z[fold == k].mean(axis=0)) @ (w.T / s) for z, w, s in ((x, va, sa), (y, vb, sb)))
        r = min(len(sa), len(sb))
        left, right = left @ u[:, :r], right @ vt.T[:, :r]
        sums.append([np.sum(left * right, axis=0), np.sum(left**2, axis=0), np.sum(right**2, axis=0)])
    top, near, far = np.sum(sums, axis=0)
    return top / np.sqrt(near * far)


def test_with_fifty_rows_for_each_column_nothing_is_chosen(rng):
    x = rng.normal(size=(400, 8))
    y = x @ rng.normal(size=(8, 8)) + 3 * rng.normal(size=(400, 8))
    found = cca(x, y)
    np.testing.assert_allclose(found.correlations, plain(x, y), atol=1e-10)
    assert found.ranks.tolist() == [8] * 5 and found.value == pytest.approx(np.mean(plain(x, y)))


@pytest.mark.parametrize("n", [100, 300, 1000])
def test_an_exact_linear_relation_is_one_along_all_directions(rng, n):
    x = rng.normal(size=(n, 32))
    found = cca(x, x @ rng.normal(size=(32, 32)))
    assert found.value == pytest.approx(1, abs=1e-6) and found.ranks.tolist() == [32] * 5


@pytest.mark.parametrize(("n", "d"), [(150, 12), (300, 100), (300, 400)])
def test_independent_rows_stay_at_zero(rng, n, d):
    x, y = spread(rng, n, d, 1.0), spread(rng, n, d, 1.0)
    # Averages over 200 directions or more in all folds: a standard error of 0.01 and less, at 12 columns of 0.024.
    for measure in (cca, svcca):
        assert abs(measure(x, y).value) < (0.05 if d > 12 else 0.12)


def test_few_rows_are_correlated_along_the_directions_that_they_carry(rng):
    """Two noisy views of the same rows: the plain estimate sinks, the leading directions keep their correlation."""
    x = spread(rng, 400, 150, 1.0)
    x, y = (z + 0.02 * rng.normal(size=x.shape) for z in (x, x @ np.linalg.qr(rng.normal(size=(150, 150)))[0]))
    found = cca(x, y)
    assert np.mean(plain(x, y)) < 0.3 and found.value > 0.55
    assert max(found.ranks) < 150


def test_wide_rows_are_reduced_without_seeing_the_pairing(rng):
    """In the reduced space the figures are near those of principal components fitted on each training set alone."""
    x = spread(rng, 200, 300, 1.0)
    y = x @ np.linalg.qr(rng.normal(size=(300, 300)))[0] + 0.02 * rng.normal(size=x.shape)
    found = held_out(folded(x, y)[0])
    assert max(found.ranks) <= 200 * 3 // 5 // 4
    exact = np.mean([svcca(x, y, k=rank).value for rank in found.ranks])
    assert found.value == pytest.approx(exact, abs=0.05)
    a, b = found.directions[0]
    assert a.shape == (300, found.ranks[0]) and b.shape == (300, found.ranks[0])


def test_the_rank_of_a_fold_does_not_depend_on_its_own_rows(rng):
    x = spread(rng, 300, 40, 1.0)
    y = x + 0.1 * rng.normal(size=x.shape)
    _, fold = folded(x, y)
    spoiled = y.copy()
    spoiled[fold == 2] = 5 * rng.normal(size=(np.sum(fold == 2), 40))
    assert cca(x, y).ranks[2] == cca(x, spoiled).ranks[2]


def test_two_folds_leave_no_judge_and_rows_decide(rng):
    x = rng.normal(size=(80, 30))
    assert cca(x, x, folds=2).ranks.tolist() == [8, 8]
    assert cca(x[:, :10], x[:, :10], folds=2).ranks.tolist() == [10, 10]


def test_folds_of_different_rank_are_pooled_direction_by_direction(rng):
    first, second = np.abs(rng.normal(size=(3, 2))), np.abs(rng.normal(size=(3, 1)))
    rho = pooled([first, second])
    assert rho[0] == pytest.approx((first[0, 0] + second[0, 0]) / np.sqrt(np.prod((first + second)[1:, 0])))
    assert rho[1] == pytest.approx(first[0, 1] / np.sqrt(first[1, 1] * first[2, 1]))
    found = Canonical([], [first, second])
    assert found.ranks == [2, 1] and found.value == pytest.approx((2 * rho[0] + rho[1]) / 3)


def test_influence_is_the_derivative_by_the_weight_of_a_row(rng):
    """Against differences: a row of the fold counts a little more, directions as they are."""
    x = rng.normal(size=(200, 3))
    y = x @ rng.normal(size=(3, 4)) + rng.normal(size=(200, 4))
    parts, fold = folded(x, y)
    found = held_out(parts)
    moved = found.influence(x, y, fold, parts)
    more = 1e-5

    def value(weights):
        products = []
        for k, (a, b) in enumerate(found.directions):
            w = weights[fold == k]
            u, v = (z[fold == k] @ c for z, c in ((x, a), (y, b)))
            u, v = (z - w @ z / w.sum() for z in (u, v))
            products.append(np.stack([w @ (u * v), w @ u**2, w @ v**2]))
        return Canonical(found.directions, products).value

    for i in (0, 77, 150):
        weights = np.ones(200)
        weights[i] += more
        slope = 200 * (value(weights) - value(np.ones(200))) / more
        n = np.sum(fold == fold[i])
        assert moved[i] == pytest.approx(slope * np.sqrt(n / (n - 1)), rel=1e-3, abs=1e-6)


def test_influence_on_cka_is_its_jackknife(rng):
    x = rng.normal(size=(400, 4)) * [3, 2, 1, 1]
    y = x @ rng.normal(size=(4, 5)) + rng.normal(size=(400, 5))
    whole, keep = linear_cka(x, y).value, np.ones(400, dtype=bool)
    moved = cka_influence(x, y, PairMoments.of(x, y))
    left_out = []
    for i in range(400):
        keep[i] = False
        left_out.append(399 * (whole - linear_cka(x[keep], y[keep]).value))
        keep[i] = True
    assert np.std(moved) == pytest.approx(np.std(left_out), rel=0.05)
    assert np.corrcoef(moved, left_out)[0, 1] > 0.99


@pytest.mark.parametrize("d", [4, 16])
def test_intervals_cover_the_correlation_of_these_directions_on_new_rows(rng, d):
    """At ten rows for each column; 200 simulations have a standard error of 1.5%."""
    n, mix = 10 * d, np.linalg.qr(rng.normal(size=(d, d)))[0] * np.linspace(1, 0.4, d)
    covered = 0
    cross, target = mix, mix.T @ mix + 0.3 * np.eye(d)
    for _ in range(200):
        x = rng.normal(size=(n, d))
        y = x @ mix + np.sqrt(0.3) * rng.normal(size=(n, d))
        parts, fold = folded(x, y)
        found = held_out(parts)
        truth = [
            count * np.stack([np.sum(a * (cross @ b), axis=0), np.sum(a * a, axis=0), np.sum(b * (target @ b), axis=0)])
            for count, (a, b) in zip(parts.counts, found.directions, strict=True)
        ]
        variance = np.mean(found.influence(x, y, fold, parts) ** 2) / n
        variance += min(found.shared_variance((d, d), n), variance)
        covered += abs(found.value - Canonical([], truth).value) < 1.96 * np.sqrt(variance)
    assert 0.88 <= covered / 200 <= 0.99


def test_a_grid_of_layers_gives_what_each_pair_gives(rng):
    x = spread(rng, 120, 150, 1.0)
    y = x + 0.05 * rng.normal(size=x.shape)
    slices = [slice(0, 20), slice(20, 150)]
    grid = Grid.of(folded(x, y)[0], slices, slices).held_out(leading=True, keep=False)
    for row, own in zip(grid, slices, strict=True):
        for found, other in zip(row, slices, strict=True):
            assert found.value == pytest.approx(svcca(x[:, own], y[:, other]).value, abs=1e-8)


def test_in_sample_correlations_are_along_all_directions(rng):
    x, y = rng.normal(size=(60, 10)), rng.normal(size=(60, 12))
    moments = PairMoments.of(x, y)
    np.testing.assert_allclose(cca(x, y, folds=1).correlations, canonical_correlations(moments, moments), atol=1e-9)
