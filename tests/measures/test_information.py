"""Entropy and mutual information of codes against textbook values and scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from nearid.measures.information import discrete_mutual_information, entropy


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
