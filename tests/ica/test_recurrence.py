"""Recurrence tells components that the data determine from those that the start chose."""

import warnings

import numpy as np
import pytest

from nearid import ICA
from nearid.ica.recurrence import Tried


def test_a_component_recurs_where_a_start_has_one_like_it(rng):
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    turned = rotation.copy()
    angle = np.pi / 4
    turned[:2] = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]) @ rotation[:2]
    tried = Tried(np.stack([rotation, -rotation[::-1], turned]), np.array([1.0, 0.9995, 0.99]))
    assert tried.recurrence(rotation).tolist() == [2, 2, 3, 3]
    assert tried.same_optimum() == 2
    np.testing.assert_allclose(tried.agreement(rotation), [(2 + np.sqrt(0.5)) / 3] * 2 + [1, 1])


def auroc(positive, negative):
    pairs = np.subtract.outer(positive, negative)
    return np.mean((pairs > 0) + 0.5 * (pairs == 0))


@pytest.mark.parametrize("gaussian", [2, 3])
def test_agreement_separates_sources_from_a_gaussian_plane(rng, gaussian):
    """Directions at random of a plane are often near each other: the count says less there than the mean does."""
    positive, negative, n, k = [], [], 4000, 10
    for _ in range(8):
        s = np.hstack([rng.laplace(size=(n, k - gaussian)), rng.normal(size=(n, gaussian))])
        x = s @ rng.normal(size=(k, k))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ICA().fit(x)
        alike = np.abs(np.corrcoef(found.transform(x).T, s.T)[:k, k : 2 * k - gaussian]).max(axis=1)
        positive += found.agreement_[alike > 0.9].tolist()
        negative += found.agreement_[alike <= 0.9].tolist()
    assert len(positive) == 8 * (k - gaussian) and auroc(positive, negative) >= 0.95


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
    assert len(positive) == 3 * k / 2 and np.mean(positive) > 2.9 and np.mean(negative) < 1
    assert auroc(positive, negative) >= 0.95
