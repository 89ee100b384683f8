"""Recurrence tells components that the data determine from those that the start chose."""

import warnings

import numpy as np
import pytest

from nearid import ICA
from nearid.ica.recurrence import Tried, alike_from, chosen_by_start, majority


def test_a_component_recurs_where_a_start_has_one_like_it(rng):
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    turned = rotation.copy()
    angle = np.pi / 4
    turned[:2] = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]) @ rotation[:2]
    tried = Tried(np.stack([rotation, -rotation[::-1], turned]), np.array([1.0, 0.9995, 0.99]))
    assert tried.recurrence(rotation, 1000).tolist() == [2, 2, 3, 3]
    assert tried.same_optimum() == 2
    np.testing.assert_allclose(tried.agreement(rotation), [(2 + np.sqrt(0.5)) / 3] * 2 + [1, 1])


def test_what_counts_as_found_follows_from_rows_and_components(rng):
    assert alike_from(20, 1000) == 0.95 and alike_from(12, 20_000) == 0.985
    assert alike_from(8, 1500) == pytest.approx(1 - 4 * 7 / 1500)
    # A start whose components are this far from the others has found them with few rows, but not with many.
    angle = np.arccos(0.97)
    turned = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    tried = Tried(turned[None], np.ones(1))
    assert tried.recurrence(np.eye(2), 100).tolist() == [1, 1] and tried.recurrence(np.eye(2), 10_000).tolist() == [
        0,
        0,
    ]


def test_more_than_half_of_the_starts_must_find_a_component():
    assert [majority(starts) for starts in (2, 3, 4, 10)] == [2, 2, 3, 6]
    chosen = chosen_by_start(np.array([5, 6, 5]), 10, np.array([False, False, True]))
    assert chosen.tolist() == [True, False, False]


def auroc(positive, negative):
    pairs = np.subtract.outer(positive, negative)
    return np.mean((pairs > 0) + 0.5 * (pairs == 0))


@pytest.mark.parametrize(("n", "k", "gaussian"), [(4000, 10, 2), (4000, 10, 3), (1000, 20, 2)])
def test_count_and_agreement_separate_sources_from_a_gaussian_plane(rng, n, k, gaussian):
    """Directions at random of a plane are often near each other: the count says less there than the mean does."""
    counts, means = ([], []), ([], [])
    for _ in range(12):
        s = np.hstack([rng.laplace(size=(n, k - gaussian)), rng.normal(size=(n, gaussian))])
        x = s @ rng.normal(size=(k, k))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ICA().fit(x)
        y = found.transform(x)
        share = (np.corrcoef(y.T, s.T)[:k, 2 * k - gaussian :] ** 2).sum(axis=1)
        for at, chosen in enumerate((share < 0.5, share >= 0.5)):
            counts[at].extend(found.recurrence_[chosen])
            means[at].extend(found.agreement_[chosen])
    assert len(counts[0]) == 12 * (k - gaussian)
    # 60 runs: 0.97 to 1.00. A dozen scatter about it.
    assert auroc(*counts) >= 0.93 and auroc(*means) >= 0.95


@pytest.mark.parametrize("k", [12, 20])
def test_recurrence_separates_sources_from_a_gaussian_subspace(rng, k):
    """AUROC of recurrence against truth; directions of the Gaussian half recur by chance only."""
    positive, negative = [], []
    for _ in range(3):
        n = 4000
        s = np.hstack([rng.laplace(size=(n, k // 2)), rng.normal(size=(n, k // 2))])
        x = s @ rng.normal(size=(k, k))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ICA().fit(x)
        alike = np.abs(np.corrcoef(found.transform(x).T, s.T)[:k, k : k + k // 2]).max(axis=1)
        positive += found.recurrence_[alike > 0.9].tolist()
        negative += found.recurrence_[alike <= 0.9].tolist()
    assert len(positive) == 3 * k / 2 and np.mean(positive) > 2.8 and np.mean(negative) < 1
    assert auroc(positive, negative) >= 0.95
