import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from nearid.measures.information import discrete_mutual_information, entropy


def test_entropy_of_known_codes():
    assert entropy(np.array([0, 1, 2, 3])) == pytest.approx(np.log(4))
    assert entropy(np.array([5, 5, 5])) == 0
    assert entropy(np.array([0, 0, 0, 1])) == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))


def test_mutual_information_is_scikit_learns(rng):
    a = rng.integers(0, 5, 300)
    b = (a + rng.integers(0, 3, 300)) * 7
    assert discrete_mutual_information(a, b) == pytest.approx(mutual_info_score(a, b), rel=1e-12)
    assert discrete_mutual_information(a, a) == pytest.approx(entropy(a), rel=1e-12)


def test_independent_tables_give_exactly_nothing():
    a, b = np.divmod(np.arange(21), 7)
    assert discrete_mutual_information(a, b) == 0
    assert discrete_mutual_information(np.zeros(21, int), b) == 0
