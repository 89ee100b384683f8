"""Entropy and mutual information of codes against textbook values and scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from nearid.measures.factors import binned
from nearid.measures.information import all_information, discrete_mutual_information, entropy


def test_entropy_of_known_shares():
    assert entropy(np.array([0, 0, 1, 2])) == pytest.approx(1.5 * np.log(2))
    assert entropy(np.array([0, 1, 2, 3])) == pytest.approx(np.log(4))
    assert entropy(np.array([0, 0, 0, 1])) == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    assert entropy(np.array([3, 3, 3])) == 0


def test_mutual_information_is_scikit_learns(rng):
    a, b = rng.integers(0, 7, 500), rng.integers(0, 4, 500)
    b[a > 4] = 1
    assert discrete_mutual_information(a, b) == pytest.approx(mutual_info_score(a, b), abs=1e-12)
    assert discrete_mutual_information(b, a) == pytest.approx(mutual_info_score(a, b), abs=1e-12)
    assert discrete_mutual_information(a, a) == pytest.approx(entropy(a), rel=1e-12)


def test_values_may_be_skipped(rng):
    a = rng.integers(0, 5, 300)
    b = (a + rng.integers(0, 3, 300)) * 7
    assert discrete_mutual_information(a, b) == pytest.approx(mutual_info_score(a, b), rel=1e-12)
    assert entropy(b) == pytest.approx(entropy(b // 7), rel=1e-12)


def test_independent_grid_and_copy():
    a, b = np.repeat([0, 1, 2], 40), np.tile([0, 1, 2, 3], 30)
    assert discrete_mutual_information(a, b) == 0
    assert discrete_mutual_information(a, a) == pytest.approx(np.log(3))


def test_independent_tables_give_exactly_nothing():
    a, b = np.divmod(np.arange(21), 7)
    assert discrete_mutual_information(a, b) == 0
    assert discrete_mutual_information(np.zeros(21, int), b) == 0


def test_many_values_need_no_table(rng):
    # A table of all pairs would take 7 TB.
    a, b = rng.permutation(1_000_000)[:1000], rng.permutation(1_000_000)[:1000]
    assert discrete_mutual_information(a, b) == pytest.approx(np.log(1000))


def test_all_latents_with_all_factors_are_each_pair_alone(rng):
    codes = [rng.integers(0, 3, 400), np.repeat(np.arange(20), 20), np.arange(400) % 2]
    # Related, unrelated, independent by design, and constant.
    x = np.column_stack([codes[0] + rng.normal(size=400), rng.normal(size=400), np.arange(400) // 2 % 2, np.ones(400)])
    ticks = []
    found = all_information(x, codes, 10, lambda: ticks.append(1))
    expected = [[discrete_mutual_information(binned(column, 10), c) for c in codes] for column in x.T]
    np.testing.assert_allclose(found, expected, atol=1e-13)
    assert found[2, 2] == 0 and not found[3].any() and len(ticks) == 3
