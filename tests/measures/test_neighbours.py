"""Mutual information by sorted neighbours against all pairs of distances, scikit-learn, and closed forms."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import digamma
from sklearn.feature_selection import mutual_info_classif

from nearid.measures.neighbours import TIE, neighbour_information


def by_all_pairs(values, codes, k, count_ties):
    """The estimator as it is written down, from the matrix of distances."""
    kept = np.bincount(codes)[codes] > 1
    values, codes = values[kept], codes[kept]
    n, total = len(values), 0.0
    if not n:
        return 0.0
    distances = np.abs(values[:, None] - values)
    for i in range(n):
        same = codes == codes[i]
        near = min(k, same.sum() - 1)
        # The first is the point itself.
        distance = np.sort(distances[i, same])[near]
        radius = max(distance - TIE, TIE) if count_ties else np.nextafter(distance, 0)
        within = distances[i] <= radius
        total += digamma((within & same).sum() if count_ties else near)
        total -= digamma(same.sum()) + digamma(within.sum())
    return max(0.0, digamma(n) + total / n)


points = st.tuples(st.one_of(st.integers(-4, 4), st.floats(-3, 3, allow_nan=False)), st.integers(0, 4))


@given(st.lists(points, min_size=2, max_size=80), st.integers(1, 6), st.booleans())
def test_sorting_gives_what_all_pairs_give(drawn, k, count_ties):
    values, codes = np.array([float(x) for x, _ in drawn]), np.array([c for _, c in drawn])
    found = neighbour_information(values, codes[None], k=k, count_ties=count_ties)
    assert found[0] == pytest.approx(by_all_pairs(values, codes, k, count_ties), abs=1e-11)


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("classes", [2, 9])
def test_without_ties_it_is_scikit_learns(rng, k, classes):
    codes = rng.integers(0, classes, (2, 600))
    values = rng.normal(size=600) + 0.7 * codes[0]
    values /= values.std()
    sklearns = [mutual_info_classif(values[:, None], c, n_neighbors=k, random_state=0)[0] for c in codes]
    np.testing.assert_allclose(neighbour_information(values, codes, k=k), sklearns, atol=1e-9)


def test_tied_values_are_counted(rng):
    """Of discrete values, with more than k of each, it is the estimate from counts with digamma for log."""
    codes = rng.integers(0, 3, 900)
    values = np.where(rng.random(900) < 0.6, codes, rng.integers(0, 3, 900))
    joint = np.array([np.sum((codes == c) & (values == v)) for c, v in zip(codes, values, strict=True)])
    sizes, levels = np.bincount(codes)[codes], np.bincount(values)[values]
    expected = digamma(900) + np.mean(digamma(joint) - digamma(sizes) - digamma(levels))
    assert neighbour_information(values.astype(float), codes[None], k=10)[0] == pytest.approx(expected, abs=1e-12)


def test_gaussian_classes_have_their_true_information(rng):
    """Two unit Gaussians 2 apart: 0.3368 nats, by quadrature."""
    grid = np.linspace(-9, 9, 20_001)
    density = [np.exp(-((grid - m) ** 2) / 2) / np.sqrt(2 * np.pi) for m in (-1, 1)]
    mixture = (density[0] + density[1]) / 2
    truth = sum(np.sum(d * np.log(d / mixture)) / 2 for d in density) * (grid[1] - grid[0])
    codes = rng.integers(0, 2, 20_000)
    values = rng.normal(size=20_000) + 2 * codes - 1
    assert neighbour_information(values, codes[None], k=10)[0] == pytest.approx(truth, abs=0.015)


def test_singletons_alone_inform_of_nothing():
    assert neighbour_information(np.arange(4.0), np.array([[0, 1, 2, 3]]), k=3)[0] == 0


def test_many_variables_are_estimated_one_by_one(rng):
    values = np.round(rng.normal(size=(7, 120)), 1)
    codes = np.array([rng.integers(0, c, 120) for c in (2, 15)])
    together = neighbour_information(values, codes, k=5)
    assert together.shape == (7, 2)
    for own, estimates in zip(values, together, strict=True):
        np.testing.assert_array_equal(neighbour_information(own, codes, k=5), estimates)
        oracle = [by_all_pairs(own, c, 5, count_ties=True) for c in codes]
        np.testing.assert_allclose(estimates, oracle, atol=1e-12)


@pytest.mark.parametrize("count_ties", [True, False])
def test_crowds_far_values_and_classes_of_one_row_are_counted_like_others(rng, count_ties):
    """One far value puts all others into the same cell, where ends of balls are found by halves."""
    codes = np.concatenate([rng.integers(0, 9, 298), [9, 10]])
    far = np.append(rng.normal(size=299), 1e6)
    crowded = np.concatenate([np.repeat([0.0, 1.0], 20), rng.normal(size=260) * 1e-5])
    for values in (far, crowded, rng.standard_cauchy(300), np.exp(9 * rng.normal(size=300)), np.zeros(300)):
        values = values / (values.std() or 1.0)
        found = neighbour_information(values, codes[None], k=5, count_ties=count_ties)[0]
        assert found == pytest.approx(by_all_pairs(values, codes, 5, count_ties), abs=1e-11)
